__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    double v = in[i];
    while (v > 1.0) v *= 0.5;
    out[i] = v + in[i - 1] + in[i + 1];
}
// expect:
// stencil::loop
//
//   × a `while` loop is not understood in a stencil
//    ╭─[twin-loop-on-data.cu:5:5]
//  4 │     double v = in[i];
//  5 │     while (v > 1.0) v *= 0.5;
//    ·     ────────────┬────────────
//    ·                 ╰── this loop
//  6 │     out[i] = v + in[i - 1] + in[i + 1];
//    ╰────
//   help: write a `for` loop over one dimension
