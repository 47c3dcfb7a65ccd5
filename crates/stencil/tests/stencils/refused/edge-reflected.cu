__device__ int reflected(int i, int n) {
    if (i < 0) return -i - 1;
    if (i >= n) return 2 * n - i - 1;
    return i;
}
__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    out[x] = in[reflected(x - 1, n)] + in[reflected(x + 1, n)];
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[edge-reflected.cu:3:5]
//  2 │     if (i < 0) return -i - 1;
//  3 │     if (i >= n) return 2 * n - i - 1;
//    ·     ────────────────┬────────────────
//    ·                     ╰── no index that is clamped to the last cell of a row or wraps to its first one
//  4 │     return i;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
