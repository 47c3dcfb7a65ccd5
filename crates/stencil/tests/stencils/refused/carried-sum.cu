__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = in[i];
    for (int k = 1; k < l; k++) {
        sum = sum + in[k * n + i];
        out[k * n + i] = sum;
    }
}
// expect:
// stencil::carried
//
//   × `sum` is carried from one point to the next
//    ╭─[carried-sum.cu:5:5]
//  4 │     double sum = in[i];
//  5 │     for (int k = 1; k < l; k++) {
//    ·     ──────────────┬─────────────
//    ·                   ╰── changed by this loop over points
//  6 │         sum = sum + in[k * n + i];
//    ╰────
//   help: a running index grows by the same every time; a register holds an element of an array
