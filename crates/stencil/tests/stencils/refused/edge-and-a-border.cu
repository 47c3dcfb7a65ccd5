__global__ void f(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (y == 0 || y == h - 1) { out[y * w + x] = 0; return; }
    out[y * w + x] = in[y * w + max(x - 1, 0)] + in[(y + 1) * w + x] + in[(y - 1) * w + x];
}
// expect:
// stencil::edge
//
//   × a border and indices that are clamped or wrapped are not understood together
//    ╭─[edge-and-a-border.cu:6:22]
//  5 │     if (y == 0 || y == h - 1) { out[y * w + x] = 0; return; }
//  6 │     out[y * w + x] = in[y * w + max(x - 1, 0)] + in[(y + 1) * w + x] + in[(y - 1) * w + x];
//    ·                      ────────────┬────────────
//    ·                                  ╰── in this access
//  7 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
