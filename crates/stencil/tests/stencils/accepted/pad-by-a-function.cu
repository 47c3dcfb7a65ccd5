__device__ float get(const float *p, int x, int y, int w, int h) {
    if (x < 0 || y < 0 || x >= w || y >= h) return 0.0f;
    return p[y * w + x];
}
__global__ void blur(float *dst, const float *src, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i)
            s += get(src, x + i, y + j, w, h);
    dst[y * w + x] = s / 9.0f;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function blur (dst, src) {
//   float s = 0.0f;
//   s += src[y-1][x-1];
//   s += src[y-1][x];
//   s += src[y-1][x+1];
//   s += src[y][x-1];
//   s += src[y][x];
//   s += src[y][x+1];
//   s += src[y+1][x-1];
//   s += src[y+1][x];
//   s += src[y+1][x+1];
//   dst[y][x] = s / 9.0f;
// }
// // other points of y = 0 : h, x = 0 : w:
// //   float s = 0.0f;
// //   s += (x >= 1 && y >= 1 && x < w+1 && y < h+1 ? src[y-1][x-1] : 0.0f);
// //   s += (x >= 0 && y >= 1 && x < w && y < h+1 ? src[y-1][x] : 0.0f);
// //   s += (x >= -1 && y >= 1 && x < w-1 && y < h+1 ? src[y-1][x+1] : 0.0f);
// //   s += (x >= 1 && y >= 0 && x < w+1 && y < h ? src[y][x-1] : 0.0f);
// //   s += (x >= 0 && y >= 0 && x < w && y < h ? src[y][x] : 0.0f);
// //   s += (x >= -1 && y >= 0 && x < w-1 && y < h ? src[y][x+1] : 0.0f);
// //   s += (x >= 1 && y >= -1 && x < w+1 && y < h-1 ? src[y+1][x-1] : 0.0f);
// //   s += (x >= 0 && y >= -1 && x < w && y < h-1 ? src[y+1][x] : 0.0f);
// //   s += (x >= -1 && y >= -1 && x < w-1 && y < h-1 ? src[y+1][x+1] : 0.0f);
// //   dst[y][x] = s / 9.0f;
// parameter w, h;
// iterator y, x;
// float dst[h][w], src[h][w];
// blur (dst, src);
// return dst;
