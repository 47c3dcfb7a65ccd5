__global__ void life(int *next, const int *now, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= w - 1 || y < 1 || y >= h - 1) return;
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx != 0 || dy != 0) n += now[(y + dy) * w + x + dx];
    next[y * w + x] = n == 3 || (n == 2 && now[y * w + x]);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function life (next, now) {
//   int n = 0 + now[y-1][x-1];
//   n += now[y-1][x];
//   n += now[y-1][x+1];
//   n += now[y][x-1];
//   n += now[y][x+1];
//   n += now[y+1][x-1];
//   n += now[y+1][x];
//   n += now[y+1][x+1];
//   next[y][x] = if_equal(n, 3, 1, if_equal(n, 2, if_equal(now[y][x], 0, 0, 1), 0));
// }
// parameter w, h;
// iterator y, x;
// int next[h][w], now[h][w];
// life (next, now);
// return next;
