__global__ void clampd(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        float s = 0.f;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                s += in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
        out[y * w + x] = s * (1.0f / 9.0f);
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function clampd (out, in) {
//   float s = 0.0f;
//   s += in[y-1][x-1];
//   s += in[y-1][x];
//   s += in[y-1][x+1];
//   s += in[y][x-1];
//   s += in[y][x];
//   s += in[y][x+1];
//   s += in[y+1][x-1];
//   s += in[y+1][x];
//   s += in[y+1][x+1];
//   out[y][x] = s * 0.11111111f;
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   float s = 0.0f;
// //   s += in[y-1][x-1];
// //   s += in[y-1][x];
// //   s += in[y-1][x+1];
// //   s += in[y][x-1];
// //   s += in[y][x];
// //   s += in[y][x+1];
// //   s += in[y+1][x-1];
// //   s += in[y+1][x];
// //   s += in[y+1][x+1];
// //   out[y][x] = s * 0.11111111f;
// parameter w, h;
// iterator y, x;
// float out[h][w], in[h][w];
// clampd (out, in);
// return out;
