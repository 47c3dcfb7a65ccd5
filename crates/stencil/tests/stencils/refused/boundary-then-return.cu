__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    if (i < 2) {
        out[j * n + i] = 0.0;
        return;
    }
    out[j * n + i] = in[j * n + i - 2];
}

// expect:
// stencil::divergent
//
//   × some points leave the kernel in the middle
//    ╭─[boundary-then-return.cu:5:9]
//  4 │     if (i >= n || j >= m) return;
//  5 │     if (i < 2) {
//    ·         ──┬──
//    ·           ╰── where this holds
//  6 │         out[j * n + i] = 0.0;
//    ╰────
//   help: treat the boundary in a kernel of its own
