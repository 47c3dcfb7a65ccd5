__global__ void zeropad(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float left = x > 0 ? in[y * w + x - 1] : 0.0f;
    float right = x + 1 < w ? in[y * w + x + 1] : 0.0f;
    float up = y > 0 ? in[(y - 1) * w + x] : 0.0f;
    float down = y + 1 < h ? in[(y + 1) * w + x] : 0.0f;
    out[y * w + x] = left + right + up + down - 4.0f * in[y * w + x];
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function zeropad (out, in) {
//   float left = in[y][x-1];
//   float right = in[y][x+1];
//   float up = in[y-1][x];
//   float down = in[y+1][x];
//   out[y][x] = left + right + up + down - 4.0f * in[y][x];
// }
// // other points of y = 0 : h, x = 0 : w:
// //   float left = (x >= 1 ? in[y][x-1] : 0.0f);
// //   float right = (x < w-1 ? in[y][x+1] : 0.0f);
// //   float up = (y >= 1 ? in[y-1][x] : 0.0f);
// //   float down = (y < h-1 ? in[y+1][x] : 0.0f);
// //   out[y][x] = left + right + up + down - 4.0f * in[y][x];
// parameter w, h;
// iterator y, x;
// float out[h][w], in[h][w];
// zeropad (out, in);
// return out;
