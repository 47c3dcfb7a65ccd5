struct Grid { int nx, ny; double dx, dy; };
__global__ void sp(double *out, const double *in, Grid g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= g.nx - 1 || j < 1 || j >= g.ny - 1) return;
    out[j * g.nx + i] = (in[j * g.nx + i + 1] - in[j * g.nx + i - 1]) / g.dx + (in[(j + 1) * g.nx + i] - in[(j - 1) * g.nx + i]) / g.dy;
}
// expect:
// stencil::expression
//
//   × the member `.nx` of a structure is not understood in a stencil
//    ╭─[style-struct-params.cu:5:23]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < 1 || i >= g.nx - 1 || j < 1 || j >= g.ny - 1) return;
//    ·                       ──┬─
//    ·                         ╰── here
//  6 │     out[j * g.nx + i] = (in[j * g.nx + i + 1] - in[j * g.nx + i - 1]) / g.dx + (in[(j + 1) * g.nx + i] - in[(j - 1) * g.nx + i]) / g.dy;
//    ╰────
