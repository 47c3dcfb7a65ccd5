__global__ void zeropad(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float left = x > 0 ? in[y * w + x - 1] : 0.0f;
    float right = x + 1 < w ? in[y * w + x + 1] : 0.0f;
    float up = y > 0 ? in[(y - 1) * w + x] : 0.0f;
    float down = y + 1 < h ? in[(y + 1) * w + x] : 0.0f;
    out[y * w + x] = left + right + up + down - 4.0f * in[y * w + x];
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[style-zero-outside.cu:5:18]
//  4 │     if (x >= w || y >= h) return;
//  5 │     float left = x > 0 ? in[y * w + x - 1] : 0.0f;
//    ·                  ────────────────┬───────────────
//    ·                                  ╰── no index that is clamped to the last cell of a row or wraps to its first one
//  6 │     float right = x + 1 < w ? in[y * w + x + 1] : 0.0f;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
