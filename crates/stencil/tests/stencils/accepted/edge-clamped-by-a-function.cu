__device__ int clampi(int v, int lo, int hi) { return v < lo ? lo : (v > hi ? hi : v); }
__global__ void sobel(const float* img, float* out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int xm = clampi(x - 1, 0, w - 1), xp = clampi(x + 1, 0, w - 1);
    int ym = clampi(y - 1, 0, h - 1), yp = clampi(y + 1, 0, h - 1);
    float gx = img[ym*w+xp] + 2.f*img[y*w+xp] + img[yp*w+xp] - img[ym*w+xm] - 2.f*img[y*w+xm] - img[yp*w+xm];
    float gy = img[yp*w+xm] + 2.f*img[yp*w+x] + img[yp*w+xp] - img[ym*w+xm] - 2.f*img[ym*w+x] - img[ym*w+xp];
    out[y*w+x] = sqrtf(gx*gx + gy*gy);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function sobel (img, out) {
//   float gx = img[y-1][x+1] + 2.0f * img[y][x+1] + img[y+1][x+1] - img[y-1][x-1] - 2.0f * img[y][x-1] - img[y+1][x-1];
//   float gy = img[y+1][x-1] + 2.0f * img[y+1][x] + img[y+1][x+1] - img[y-1][x-1] - 2.0f * img[y-1][x] - img[y-1][x+1];
//   out[y][x] = sqrt(gx * gx + gy * gy);
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   float gx = img[y-1][x+1] + 2.0f * img[y][x+1] + img[y+1][x+1] - img[y-1][x-1] - 2.0f * img[y][x-1] - img[y+1][x-1];
// //   float gy = img[y+1][x-1] + 2.0f * img[y+1][x] + img[y+1][x+1] - img[y-1][x-1] - 2.0f * img[y-1][x] - img[y-1][x+1];
// //   out[y][x] = sqrt(gx * gx + gy * gy);
// parameter w, h;
// iterator y, x;
// float img[h][w], out[h][w];
// sobel (img, out);
// return out;
