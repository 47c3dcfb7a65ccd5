__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = i < n ? in[i] : 0.0;
    double l = __shfl_up_sync(0xffffffff, v, 1), r = __shfl_down_sync(0xffffffff, v, 1);
    if (i > 0 && i < n - 1) out[i] = l + r;
}
// expect:
// stencil::warp
//
//   × threads of a warp exchange values; points are independent
//    ╭─[twin-shuffle.cu:4:16]
//  3 │     double v = i < n ? in[i] : 0.0;
//  4 │     double l = __shfl_up_sync(0xffffffff, v, 1), r = __shfl_down_sync(0xffffffff, v, 1);
//    ·                ───────┬──────
//    ·                       ╰── `__shfl_up_sync`
//  5 │     if (i > 0 && i < n - 1) out[i] = l + r;
//    ╰────
