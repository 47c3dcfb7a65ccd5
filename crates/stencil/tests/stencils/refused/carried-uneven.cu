__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    for (int k = 1; k < l; k++) {
        out[k * n + i] = in[at];
        at += k * n;
    }
}
// expect:
// stencil::carried
//
//   × `at` is carried from one point to the next
//    ╭─[carried-uneven.cu:5:5]
//  4 │     int at = i;
//  5 │     for (int k = 1; k < l; k++) {
//    ·     ──────────────┬─────────────
//    ·                   ╰── changed by this loop over points
//  6 │         out[k * n + i] = in[at];
//    ╰────
//   help: a running index grows by the same every time; a register holds an element of an array
