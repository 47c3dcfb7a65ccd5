__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i == 0 || i == n - 1) {
        out[i] = out[i + 1];
        return;
    }
    out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::in-place
//
//   × `out` is read at another point than the one that is written
//    ╭─[border-reads-the-inside.cu:5:9]
//  4 │     if (i == 0 || i == n - 1) {
//  5 │         out[i] = out[i + 1];
//    ·         ───┬──   ─────┬────
//    ·            │          ╰── depends on the order of the points
//    ·            ╰── written here
//  6 │         return;
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
