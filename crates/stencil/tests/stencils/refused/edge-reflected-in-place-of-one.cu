__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    int left = x == 0 ? 1 : x - 1;
    out[x] = in[left] + in[x];
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[edge-reflected-in-place-of-one.cu:4:16]
//  3 │     if (x >= n) return;
//  4 │     int left = x == 0 ? 1 : x - 1;
//    ·                ─────────┬────────
//    ·                         ╰── no index that is clamped to the last cell of a row or wraps to its first one
//  5 │     out[x] = in[left] + in[x];
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
