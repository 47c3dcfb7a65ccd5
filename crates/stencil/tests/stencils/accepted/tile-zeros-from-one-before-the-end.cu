#define TW 4
#define R 1
__global__ void conv(const float *in, float *out, int w, int h) {
  __shared__ float tile[TW + 2 * R][TW + 2 * R];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x = blockIdx.x * TW + tx, y = blockIdx.y * TW + ty;
  for (int j = ty; j < TW + 2 * R; j += TW)
    for (int i = tx; i < TW + 2 * R; i += TW) {
      int gx = blockIdx.x * TW + i - R, gy = blockIdx.y * TW + j - R;
      tile[j][i] = (gx >= 0 && gx < w - 1 && gy >= 0 && gy < h) ? in[gy * w + gx] : 0.0f;
    }
  __syncthreads();
  if (x < w && y < h) {
    float s = 0.0f;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i)
        s += tile[ty + j][tx + i];
    out[y * w + x] = s / 9.0f;
  }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 2 cells are not computed
// function conv (in, out) {
//   float s = 0.0f;
//   s += in[y-1][x-1];
//   s += in[y-1][x];
//   s += in[y-1][x+1];
//   s += in[y][x-1];
//   s += in[y][x];
//   s += in[y][x+1];
//   s += in[y+1][x-1];
//   s += in[y+1][x];
//   s += in[y+1][x+1];
//   out[y][x] = s / 9.0f;
// }
// // other points of y = 0 : h, x = 0 : w:
// //   float s = 0.0f;
// //   s += (x >= 1 && x < w && y >= 1 && y < h+1 ? in[y-1][x-1] : 0.0f);
// //   s += (x >= 0 && x < w-1 && y >= 1 && y < h+1 ? in[y-1][x] : 0.0f);
// //   s += (x >= -1 && x < w-2 && y >= 1 && y < h+1 ? in[y-1][x+1] : 0.0f);
// //   s += (x >= 1 && x < w && y >= 0 && y < h ? in[y][x-1] : 0.0f);
// //   s += (x >= 0 && x < w-1 && y >= 0 && y < h ? in[y][x] : 0.0f);
// //   s += (x >= -1 && x < w-2 && y >= 0 && y < h ? in[y][x+1] : 0.0f);
// //   s += (x >= 1 && x < w && y >= -1 && y < h-1 ? in[y+1][x-1] : 0.0f);
// //   s += (x >= 0 && x < w-1 && y >= -1 && y < h-1 ? in[y+1][x] : 0.0f);
// //   s += (x >= -1 && x < w-2 && y >= -1 && y < h-1 ? in[y+1][x+1] : 0.0f);
// //   out[y][x] = s / 9.0f;
// parameter w, h;
// iterator y, x;
// float in[h][w], out[h][w];
// points x = 1 : w-2;
// conv (in, out);
// return out;
