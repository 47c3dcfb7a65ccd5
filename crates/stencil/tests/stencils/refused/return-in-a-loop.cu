__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < l; k++) {
        if (i >= n) return;
        out[k * n + i] = in[k * n + i];
    }
}

// expect:
// stencil::guard
//
//   × the first point is not known when the kernel is compiled
//    ╭─[return-in-a-loop.cu:4:13]
//  3 │     for (int k = 0; k < l; k++) {
//  4 │         if (i >= n) return;
//    ·             ───┬──
//    ·                ╰── a lower bound is a number
//  5 │         out[k * n + i] = in[k * n + i];
//    ╰────
