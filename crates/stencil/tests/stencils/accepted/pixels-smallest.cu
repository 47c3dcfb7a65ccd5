__global__ void erode(const unsigned char *in, unsigned char *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  unsigned char m = 255;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int xx = min(max(x + dx, 0), w - 1), yy = min(max(y + dy, 0), h - 1);
      m = min(m, in[yy * w + xx]);
    }
  out[y * w + x] = m;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function erode (in, out) {
//   uchar m = to_uchar(fmin(255, to_int(in[y-1][x-1])));
//   uchar m_2 = to_uchar(fmin(to_int(m), to_int(in[y-1][x])));
//   uchar m_3 = to_uchar(fmin(to_int(m_2), to_int(in[y-1][x+1])));
//   uchar m_4 = to_uchar(fmin(to_int(m_3), to_int(in[y][x-1])));
//   uchar m_5 = to_uchar(fmin(to_int(m_4), to_int(in[y][x])));
//   uchar m_6 = to_uchar(fmin(to_int(m_5), to_int(in[y][x+1])));
//   uchar m_7 = to_uchar(fmin(to_int(m_6), to_int(in[y+1][x-1])));
//   uchar m_8 = to_uchar(fmin(to_int(m_7), to_int(in[y+1][x])));
//   uchar m_9 = to_uchar(fmin(to_int(m_8), to_int(in[y+1][x+1])));
//   out[y][x] = m_9;
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   uchar m = to_uchar(fmin(255, to_int(in[y-1][x-1])));
// //   uchar m_2 = to_uchar(fmin(to_int(m), to_int(in[y-1][x])));
// //   uchar m_3 = to_uchar(fmin(to_int(m_2), to_int(in[y-1][x+1])));
// //   uchar m_4 = to_uchar(fmin(to_int(m_3), to_int(in[y][x-1])));
// //   uchar m_5 = to_uchar(fmin(to_int(m_4), to_int(in[y][x])));
// //   uchar m_6 = to_uchar(fmin(to_int(m_5), to_int(in[y][x+1])));
// //   uchar m_7 = to_uchar(fmin(to_int(m_6), to_int(in[y+1][x-1])));
// //   uchar m_8 = to_uchar(fmin(to_int(m_7), to_int(in[y+1][x])));
// //   uchar m_9 = to_uchar(fmin(to_int(m_8), to_int(in[y+1][x+1])));
// //   out[y][x] = m_9;
// parameter w, h;
// iterator y, x;
// uchar in[h][w], out[h][w];
// erode (in, out);
// return out;
