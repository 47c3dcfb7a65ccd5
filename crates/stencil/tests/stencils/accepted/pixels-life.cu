__global__ void life8(const unsigned char *cur, unsigned char *next, int n, int m) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= m - 1) return;
  int c = 0;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i)
      if (i != 0 || j != 0) c += cur[(y + j) * n + x + i];
  unsigned char me = cur[y * n + x];
  if (c == 3) me = 1;
  else if (c != 2) me = 0;
  next[y * n + x] = me;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function life8 (cur, next) {
//   int c = 0 + to_int(cur[y-1][x-1]);
//   c += to_int(cur[y-1][x]);
//   c += to_int(cur[y-1][x+1]);
//   c += to_int(cur[y][x-1]);
//   c += to_int(cur[y][x+1]);
//   c += to_int(cur[y+1][x-1]);
//   c += to_int(cur[y+1][x]);
//   c += to_int(cur[y+1][x+1]);
//   uchar me = cur[y][x];
//   int condition = if_equal(c, 3, 1, 0);
//   uchar me_2 = to_uchar(if_equal(condition, 0, to_int(me), 1));
//   int condition_2 = if_equal(c, 2, 0, 1);
//   uchar me_3 = to_uchar(if_equal(condition_2, 0, to_int(me_2), if_equal(condition, 0, 0, to_int(me_2))));
//   next[y][x] = me_3;
// }
// parameter n, m;
// iterator y, x;
// uchar cur[m][n], next[m][n];
// life8 (cur, next);
// return next;
