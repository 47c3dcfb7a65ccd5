__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i == 0) {
        out[i] = in[i];
        return;
    }
    if (i == n - 1) {
        out[i] = 0.0;
        return;
    }
    out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::border
//
//   × a second kind of boundary is not understood
//    ╭─[border-of-two-kinds.cu:8:9]
//  7 │     }
//  8 │     if (i == n - 1) {
//    ·         ─────┬────
//    ·              ╰── where this holds
//  9 │         out[i] = 0.0;
//    ╰────
//   help: treat the boundary in a kernel of its own
