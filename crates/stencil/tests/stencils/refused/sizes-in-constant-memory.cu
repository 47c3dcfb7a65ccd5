struct Grid { int nx, ny; };
__constant__ Grid g;
__constant__ int nx_d;
__global__ void jac(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < g.nx - 1 && j > 0 && j < g.ny - 1)
        out[j * g.nx + i] = in[j * g.nx + i - 1] + in[j * g.nx + i + 1] + in[(j - 1) * g.nx + i] + in[(j + 1) * g.nx + i];
}
// expect:
// stencil::expression
//
//   × the member `.nx` of a structure is not understood in a stencil
//    ╭─[sizes-in-constant-memory.cu:7:22]
//  6 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  7 │     if (i > 0 && i < g.nx - 1 && j > 0 && j < g.ny - 1)
//    ·                      ──┬─
//    ·                        ╰── here
//  8 │         out[j * g.nx + i] = in[j * g.nx + i - 1] + in[j * g.nx + i + 1] + in[(j - 1) * g.nx + i] + in[(j + 1) * g.nx + i];
//    ╰────
