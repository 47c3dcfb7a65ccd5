__global__ void sharpen(unsigned char *out, const unsigned char *in, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int l = max(x - 1, 0), r = min(x + 1, w - 1);
  int u = max(y - 1, 0), d = min(y + 1, h - 1);
  int v = 5 * in[y * w + x] - in[y * w + l] - in[y * w + r] - in[u * w + x] - in[d * w + x];
  v = v < 0 ? 0 : (v > 255 ? 255 : v);
  out[y * w + x] = v;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function sharpen (out, in) {
//   int v = 5 * to_int(in[y][x]) - to_int(in[y][x-1]) - to_int(in[y][x+1]) - to_int(in[y-1][x]) - to_int(in[y+1][x]);
//   int v_2 = if_less(v, 0, 0, if_less(255, v, 255, v));
//   out[y][x] = to_uchar(v_2);
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   int v = 5 * to_int(in[y][x]) - to_int(in[y][x-1]) - to_int(in[y][x+1]) - to_int(in[y-1][x]) - to_int(in[y+1][x]);
// //   int v_2 = if_less(v, 0, 0, if_less(255, v, 255, v));
// //   out[y][x] = to_uchar(v_2);
// parameter w, h;
// iterator y, x;
// uchar out[h][w], in[h][w];
// sharpen (out, in);
// return out;
