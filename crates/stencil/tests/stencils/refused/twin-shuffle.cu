__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = i < n ? in[i] : 0.0;
    double l = __shfl_up_sync(0xffffffff, v, 1), r = __shfl_down_sync(0xffffffff, v, 1);
    if (i > 0 && i < n - 1) out[i] = l + r;
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[twin-shuffle.cu:3:16]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     double v = i < n ? in[i] : 0.0;
//    ·                ─────────┬─────────
//    ·                         ╰── no index that is clamped to the last cell of a row or wraps to its first one
//  4 │     double l = __shfl_up_sync(0xffffffff, v, 1), r = __shfl_down_sync(0xffffffff, v, 1);
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
