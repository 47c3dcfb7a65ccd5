__global__ void sobelf(const unsigned char *src, unsigned char *dst, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || x >= width - 1 || y < 1 || y >= height - 1) return;
  float gx = (float)src[(y-1)*width + x+1] - src[(y-1)*width + x-1]
           + 2.0f*src[y*width + x+1] - 2.0f*src[y*width + x-1]
           + src[(y+1)*width + x+1] - src[(y+1)*width + x-1];
  float gy = (float)src[(y+1)*width + x-1] - src[(y-1)*width + x-1]
           + 2.0f*src[(y+1)*width + x] - 2.0f*src[(y-1)*width + x]
           + src[(y+1)*width + x+1] - src[(y-1)*width + x+1];
  float m = sqrtf(gx*gx + gy*gy);
  if (m > 255.0f) m = 255.0f;
  dst[y*width + x] = (unsigned char)m;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function sobelf (src, dst) {
//   float gx = to_float(src[y-1][x+1]) - to_float(src[y-1][x-1]) + 2.0f * to_float(src[y][x+1]) - 2.0f * to_float(src[y][x-1]) + to_float(src[y+1][x+1]) - to_float(src[y+1][x-1]);
//   float gy = to_float(src[y+1][x-1]) - to_float(src[y-1][x-1]) + 2.0f * to_float(src[y+1][x]) - 2.0f * to_float(src[y-1][x]) + to_float(src[y+1][x+1]) - to_float(src[y-1][x+1]);
//   float m = sqrt(gx * gx + gy * gy);
//   float condition = if_less(255.0f, m, 1.0f, 0.0f);
//   float m_2 = if_equal(condition, 0.0f, m, 255.0f);
//   dst[y][x] = to_uchar(m_2);
// }
// parameter width, height;
// iterator y, x;
// uchar src[height][width], dst[height][width];
// sobelf (src, dst);
// return dst;
