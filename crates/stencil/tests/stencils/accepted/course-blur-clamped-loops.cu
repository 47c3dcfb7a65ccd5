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
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function box_blur (src, dst) {
//   float sum = 0.0f;
//   sum += src[y-1][x-1];
//   sum += src[y-1][x];
//   sum += src[y-1][x+1];
//   sum += src[y][x-1];
//   sum += src[y][x];
//   sum += src[y][x+1];
//   sum += src[y+1][x-1];
//   sum += src[y+1][x];
//   sum += src[y+1][x+1];
//   dst[y][x] = sum / 9.0f;
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   float sum = 0.0f;
// //   sum += src[y-1][x-1];
// //   sum += src[y-1][x];
// //   sum += src[y-1][x+1];
// //   sum += src[y][x-1];
// //   sum += src[y][x];
// //   sum += src[y][x+1];
// //   sum += src[y+1][x-1];
// //   sum += src[y+1][x];
// //   sum += src[y+1][x+1];
// //   dst[y][x] = sum / 9.0f;
// parameter w, h;
// iterator y, x;
// float src[h][w], dst[h][w];
// box_blur (src, dst);
// return dst;
