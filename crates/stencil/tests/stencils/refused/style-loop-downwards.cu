__global__ void column(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    for (int k = nz - 2; k >= 1; --k)
        out[(k * ny + j) * nx + i] = in[((k - 1) * ny + j) * nx + i] + in[((k + 1) * ny + j) * nx + i];
}
// expect:
// stencil::loop
//
//   × a loop over points visits each of them, upwards
//    ╭─[style-loop-downwards.cu:5:5]
//  4 │         if (i >= nx || j >= ny) return;
//  5 │ ╭─▶     for (int k = nz - 2; k >= 1; --k)
//  6 │ ├─▶         out[(k * ny + j) * nx + i] = in[((k - 1) * ny + j) * nx + i] + in[((k + 1) * ny + j) * nx + i];
//    · ╰──── goes downwards
//  7 │     }
//    ╰────
