__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    for (int k = 0; k < l; k++) {
        if (k < 2) continue;
        out[k * n + i] = in[at];
        at += n;
    }
}
// expect:
// stencil::carried
//
//   × `at` is carried from one point to the next
//    ╭─[carried-past-a-continue.cu:5:5]
//  4 │     int at = i;
//  5 │     for (int k = 0; k < l; k++) {
//    ·     ──────────────┬─────────────
//    ·                   ╰── changed by this loop over points
//  6 │         if (k < 2) continue;
//    ╰────
//   help: a running index grows by the same every time; a register holds an element of an array
