__global__ void blur3(unsigned char *out, const unsigned char *in, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  int sum = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      sum += in[(y + dy) * w + (x + dx)];
  out[y * w + x] = sum / 9;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function blur3 (out, in) {
//   int sum = 0 + to_int(in[y-1][x-1]);
//   sum += to_int(in[y-1][x]);
//   sum += to_int(in[y-1][x+1]);
//   sum += to_int(in[y][x-1]);
//   sum += to_int(in[y][x]);
//   sum += to_int(in[y][x+1]);
//   sum += to_int(in[y+1][x-1]);
//   sum += to_int(in[y+1][x]);
//   sum += to_int(in[y+1][x+1]);
//   out[y][x] = to_uchar(quotient(sum, 9));
// }
// parameter w, h;
// iterator y, x;
// uchar out[h][w], in[h][w];
// blur3 (out, in);
// return out;
