__global__ void k(double *out, const double *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0) { out[y * w + x] = out[y * w + x + 1]; return; }
    if (x == w - 1 || y == 0 || y == h - 1) { out[y * w + x] = in[y * w + x]; return; }
    out[y * w + x] = in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x];
}
// expect:
// stencil::border
//
//   × a second kind of boundary is not understood
//    ╭─[twin-border-reads-neighbour.cu:6:9]
//  5 │     if (x == 0) { out[y * w + x] = out[y * w + x + 1]; return; }
//  6 │     if (x == w - 1 || y == 0 || y == h - 1) { out[y * w + x] = in[y * w + x]; return; }
//    ·         ─────────────────┬────────────────
//    ·                          ╰── where this holds
//  7 │     out[y * w + x] = in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x];
//    ╰────
//   help: treat the boundary in a kernel of its own
