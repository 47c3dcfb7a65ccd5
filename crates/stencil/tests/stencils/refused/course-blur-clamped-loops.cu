__global__ void box_blur(const float *src, float *dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int xx = min(max(x + dx, 0), w - 1);
            int yy = min(max(y + dy, 0), h - 1);
            sum += src[yy * w + xx];
        }
    dst[y * w + x] = sum / 9.f;
}
// expect:
// stencil::clamped
//
//   × an index that is clamped at the border is not understood
//    ╭─[course-blur-clamped-loops.cu:8:26]
//  7 │         for (int dx = -1; dx <= 1; ++dx) {
//  8 │             int xx = min(max(x + dx, 0), w - 1);
//    ·                          ───────┬──────
//    ·                                 ╰── the larger or smaller one, depending on the place of the point
//  9 │             int yy = min(max(y + dy, 0), h - 1);
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
