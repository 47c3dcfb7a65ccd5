__global__ void f(double *out, const double *in, int n, int m) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int z = blockIdx.x;
    if (i < n && z < m) out[z * n + i] = in[z * n + i];
}
// expect:
// stencil::shape
//
//   × places of blocks and of threads along one axis are different dimensions
//    ╭─[block-and-thread-mixed.cu:4:25]
//  3 │     const int z = blockIdx.x;
//  4 │     if (i < n && z < m) out[z * n + i] = in[z * n + i];
//    ·                         ───────┬──────
//    ·                                ╰── not a dimension each
//  5 │ }
//    ╰────
