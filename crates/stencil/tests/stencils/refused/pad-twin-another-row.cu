// The condition is on x, and the row above the first one is read.
__global__ void f(double *out, const double *in, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    double s = in[y * n + x];
    if (x > 0) s += in[(y - 1) * n + x];
    out[y * n + x] = s;
}
// expect:
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[pad-twin-another-row.cu:7:21]
//  6 │     double s = in[y * n + x];
//  7 │     if (x > 0) s += in[(y - 1) * n + x];
//    ·                     ─────────┬─────────
//    ·                              ╰── `y` begins too early for this
//  8 │     out[y * n + x] = s;
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
