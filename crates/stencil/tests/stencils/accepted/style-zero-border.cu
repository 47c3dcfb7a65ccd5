__global__ void zb(double *out, const double *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x > 0 && x < w - 1 && y > 0 && y < h - 1)
        out[y * w + x] = in[y * w + x - 1] * in[y * w + x + 1] - in[(y - 1) * w + x] * in[(y + 1) * w + x];
    else
        out[y * w + x] = 0.0;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function zb (out, in) {
//   out[y][x] = in[y][x-1] * in[y][x+1] - in[y-1][x] * in[y+1][x];
// }
// // other points of y = 0 : h, x = 0 : w:
// //   out[y][x] = 0.0;
// parameter w, h;
// iterator y, x;
// double out[h][w], in[h][w];
// zb (out, in);
// return out;
