__global__ void relax(int *dst, const int *src, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  int c = src[y * w + x];
  dst[y * w + x] = (4 * c + src[y * w + x - 1] + src[y * w + x + 1] + src[(y - 1) * w + x] + src[(y + 1) * w + x] + 4) >> 3;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function relax (dst, src) {
//   int c = src[y][x];
//   dst[y][x] = shift_right(4 * c + src[y][x-1] + src[y][x+1] + src[y-1][x] + src[y+1][x] + 4, 3);
// }
// parameter w, h;
// iterator y, x;
// int dst[h][w], src[h][w];
// relax (dst, src);
// return dst;
