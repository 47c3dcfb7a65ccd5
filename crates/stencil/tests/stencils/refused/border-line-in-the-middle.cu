__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i == 5) {
        out[i] = in[i];
        return;
    }
    out[i] = 2.0 * in[i];
}
// expect:
// stencil::guard
//
//   × the points are not a rectangular box
//    ╭─[border-line-in-the-middle.cu:4:9]
//  3 │     if (i >= n) return;
//  4 │     if (i == 5) {
//    ·         ───┬──
//    ·            ╰── not a bound of one iterator
//  5 │         out[i] = in[i];
//    ╰────
//   help: a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`
