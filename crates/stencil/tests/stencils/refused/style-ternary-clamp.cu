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
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[style-ternary-clamp.cu:5:14]
//  4 │     if (x >= w || y >= h) return;
//  5 │     int xm = x > 0 ? x - 1 : 0;
//    ·              ────────┬────────
//    ·                      ╰── a neighbour that is clamped, wrapped or zero outside?
//  6 │     int xp = x < w - 1 ? x + 1 : w - 1;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
