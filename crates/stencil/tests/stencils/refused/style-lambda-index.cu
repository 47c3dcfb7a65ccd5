__global__ void lam(double *out, const double *in, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    auto idx = [&](int a, int b) { return b * nx + a; };
    if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1)
        out[idx(i, j)] = in[idx(i - 1, j)] + in[idx(i + 1, j)] + in[idx(i, j - 1)] + in[idx(i, j + 1)];
}
// expect:
// cuda::subset
//
//   × this is outside the subset of CUDA C that is understood: lambda expression
//    ╭─[style-lambda-index.cu:4:16]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     auto idx = [&](int a, int b) { return b * nx + a; };
//    ·                ────────────────────┬───────────────────
//    ·                                    ╰── not understood
//  5 │     if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1)
//    ╰────
