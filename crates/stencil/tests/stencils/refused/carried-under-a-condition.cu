__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    for (int k = 0; k < l; k++) {
        out[k * n + i] = in[at];
        if (k > 2) at += n;
    }
}
// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[carried-under-a-condition.cu:6:9]
//  5 │     for (int k = 0; k < l; k++) {
//  6 │         out[k * n + i] = in[at];
//    ·         ────────────┬───────────
//    ·                     ╰── stored before it
//  7 │         if (k > 2) at += n;
//    ·             ──┬──
//    ·               ╰── this condition is not that of all statements
//  8 │     }
//    ╰────
//   help: put all stores under one bounds test
