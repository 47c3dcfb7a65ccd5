__global__ void smooth(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int xm = x > 0 ? x - 1 : 0;
    int xp = x < w - 1 ? x + 1 : w - 1;
    int ym = y > 0 ? y - 1 : 0;
    int yp = y < h - 1 ? y + 1 : h - 1;
    out[y * w + x] = 0.2f * (in[y * w + x] + in[y * w + xm] + in[y * w + xp] + in[ym * w + x] + in[yp * w + x]);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function smooth (out, in) {
//   out[y][x] = 0.2f * (in[y][x] + in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x]);
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   out[y][x] = 0.2f * (in[y][x] + in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x]);
// parameter w, h;
// iterator y, x;
// float out[h][w], in[h][w];
// smooth (out, in);
// return out;
