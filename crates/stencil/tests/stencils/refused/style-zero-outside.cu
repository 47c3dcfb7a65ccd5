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
// stencil::divergent
//
//   × points compute different things
//    ╭─[style-zero-outside.cu:5:18]
//  4 │     if (x >= w || y >= h) return;
//  5 │     float left = x > 0 ? in[y * w + x - 1] : 0.0f;
//    ·                  ────────────────┬───────────────
//    ·                                  ╰── depends on the place of the point
//  6 │     float right = x + 1 < w ? in[y * w + x + 1] : 0.0f;
//    ╰────
//   help: neighbours that are clamped, wrapped or zero outside are not understood
