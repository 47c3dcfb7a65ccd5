// Point 0 is in neither, so it keeps what stood there.
__global__ void fewer(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 2 && i < n - 2) {
        out[i] = in[i - 1] + in[i + 1];
    } else if (i >= 3 && i < n) {
        out[i] = in[i];
    }
}
// expect:
// stencil::border
//
//   × the boundary has conditions of its own
//    ╭─[else-if-of-fewer-points.cu:4:9]
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i >= 2 && i < n - 2) {
//    ·         ─────────┬─────────
//    ·                  ╰── where this holds
//  5 │         out[i] = in[i - 1] + in[i + 1];
//    ╰────
//   help: treat the boundary in a kernel of its own
