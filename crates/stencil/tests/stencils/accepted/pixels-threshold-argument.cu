__global__ void edge(const unsigned short *in, unsigned char *out, int w, int h, int threshold) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < w - 1 && y > 0 && y < h - 1) {
    int dx = in[y * w + x + 1] - in[y * w + x - 1];
    int dy = in[(y + 1) * w + x] - in[(y - 1) * w + x];
    out[y * w + x] = dx * dx + dy * dy > threshold ? 255 : 0;
  }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function edge (in, out, threshold) {
//   int dx = to_int(in[y][x+1]) - to_int(in[y][x-1]);
//   int dy = to_int(in[y+1][x]) - to_int(in[y-1][x]);
//   out[y][x] = to_uchar(if_less(threshold, dx * dx + dy * dy, 255, 0));
// }
// parameter w, h;
// iterator y, x;
// uchar out[h][w];
// ushort in[h][w];
// int threshold;
// edge (in, out, threshold);
// return out;
