__global__ void smooth(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int xm = x > 0 ? x - 1 : 0;
    int xp = x < w - 1 ? x + 1 : w - 1;
    int ym = y > 0 ? y - 1 : 0;
    int yp = y < h - 1 ? y + 1 : h - 1;
    out[y * w + x] = 0.2f * (in[y * w + x] + in[y * w + xm] + in[y * w + xp] + in[ym * w + x] + in[yp * w + x]);
}
// expect:
// stencil::divergent
//
//   × points compute different things
//    ╭─[style-ternary-clamp.cu:5:14]
//  4 │     if (x >= w || y >= h) return;
//  5 │     int xm = x > 0 ? x - 1 : 0;
//    ·              ────────┬────────
//    ·                      ╰── depends on the place of the point
//  6 │     int xp = x < w - 1 ? x + 1 : w - 1;
//    ╰────
//   help: neighbours that are clamped, wrapped or zero outside are not understood
