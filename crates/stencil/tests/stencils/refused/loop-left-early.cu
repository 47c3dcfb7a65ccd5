__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < l; k++) {
        out[k * n + i] = in[k * n + i];
        break;
    }
}

// expect:
// stencil::loop
//
//   × the loop ends at its first point
//    ╭─[loop-left-early.cu:4:5]
//  3 │     if (i >= n) return;
//  4 │     for (int k = 0; k < l; k++) {
//    ·     ──────────────┬─────────────
//    ·                   ╰── left early
//  5 │         out[k * n + i] = in[k * n + i];
//    ╰────
