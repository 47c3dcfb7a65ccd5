// The neighbour's flag may be the old one or the new one.
__global__ void f(double *out, const double *in, double *mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    if (mask[i - 1] == 0.0) return;
    mask[i] = 0.0;
    out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::in-place
//
//   × `mask` is read at another point than the one that is written
//    ╭─[mask-twin-written-mask.cu:5:9]
//  4 │     if (i < 1 || i >= n - 1) return;
//  5 │     if (mask[i - 1] == 0.0) return;
//    ·         ─────┬─────
//    ·              ╰── depends on the order of the points
//  6 │     mask[i] = 0.0;
//    ·     ───┬───
//    ·        ╰── written here
//  7 │     out[i] = in[i - 1] + in[i + 1];
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
