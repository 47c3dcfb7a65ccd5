__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    if ((i == 0 || i == n - 1) && (j == 0 || j == m - 1)) {
        out[j * n + i] = in[j * n + i];
        return;
    }
    out[j * n + i] = 2.0 * in[j * n + i];
}
// expect:
// stencil::guard
//
//   × the points are not a rectangular box
//    ╭─[border-without-edges.cu:5:9]
//  4 │     if (i >= n || j >= m) return;
//  5 │     if ((i == 0 || i == n - 1) && (j == 0 || j == m - 1)) {
//    ·         ────────────────────────┬───────────────────────
//    ·                                 ╰── not a bound of one iterator
//  6 │         out[j * n + i] = in[j * n + i];
//    ╰────
//   help: a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`
