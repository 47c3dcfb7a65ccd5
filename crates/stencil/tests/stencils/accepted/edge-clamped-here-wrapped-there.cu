__global__ void f(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int left, up = y;
    if (x == 0) left = w - 1; else left = x - 1;
    if (y > 0) up--;
    out[y * w + x] = in[y * w + left] + in[up * w + x];
}
// expect:
// y: 1 and 0 cells are not computed
// x: 1 and 0 cells are not computed
// function f (out, in) {
//   out[y][x] = in[y][x-1] + in[y-1][x];
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, wrapped along x:
// //   out[y][x] = in[y][x-1] + in[y-1][x];
// parameter w, h;
// iterator y, x;
// float out[h][w], in[h][w];
// f (out, in);
// return out;
