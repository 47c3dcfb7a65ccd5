// The points of the first condition are not all within the second one.
__global__ void odd(const float *in, float *out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        out[i] = in[i - 1] + in[i + 1];
    } else if (i < m) {
        out[i] = in[i];
    }
}
// expect:
// stencil::border
//
//   × the boundary has conditions of its own
//    ╭─[else-if-of-other-points.cu:4:9]
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i > 0 && i < n - 1) {
//    ·         ─────────┬────────
//    ·                  ╰── where this holds
//  5 │         out[i] = in[i - 1] + in[i + 1];
//    ╰────
//   help: treat the boundary in a kernel of its own
