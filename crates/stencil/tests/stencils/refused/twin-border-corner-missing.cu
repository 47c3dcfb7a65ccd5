__global__ void k(double *out, const double *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if ((x == 0 && y != 0) || x == w - 1 || y == h - 1) { out[y * w + x] = in[y * w + x]; return; }
    if (x > 0 && y > 0) out[y * w + x] = in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x];
}
// expect:
// stencil::guard
//
//   × the points are not a rectangular box
//    ╭─[twin-border-corner-missing.cu:5:9]
//  4 │     if (x >= w || y >= h) return;
//  5 │     if ((x == 0 && y != 0) || x == w - 1 || y == h - 1) { out[y * w + x] = in[y * w + x]; return; }
//    ·         ───────────────────────┬──────────────────────
//    ·                                ╰── not a bound of one iterator
//  6 │     if (x > 0 && y > 0) out[y * w + x] = in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x];
//    ╰────
//   help: a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`
