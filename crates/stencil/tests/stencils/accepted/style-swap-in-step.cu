#include <utility>
__global__ void step(float *next, const float *now, int w, int h) {
    const int x = threadIdx.x + blockIdx.x * blockDim.x;
    const int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        next[y * w + x] = now[y * w + x];
        return;
    }
    const float c = now[y * w + x];
    next[y * w + x] = c + 0.2f * (now[y * w + x - 1] + now[y * w + x + 1] + now[(y - 1) * w + x] + now[(y + 1) * w + x] - 4.0f * c);
}
void run(float *a, float *b, int w, int h, int steps) {
    dim3 tb(16, 16);
    dim3 g((w + tb.x - 1) / tb.x, (h + tb.y - 1) / tb.y);
    while (steps--) { step<<<g, tb>>>(b, a, w, h); std::swap(a, b); }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function step (next, now) {
//   float c = now[y][x];
//   next[y][x] = c + 0.2f * (now[y][x-1] + now[y][x+1] + now[y-1][x] + now[y+1][x] - 4.0f * c);
// }
// // other points of y = 0 : h, x = 0 : w:
// //   next[y][x] = now[y][x];
// parameter w, h;
// iterator y, x;
// float next[h][w], now[h][w];
// step (next, now);
// return next;
