__global__ void f(float *out, const float *in, int w, int h, int pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    out[y * pitch + x] = in[y * pitch + min(x + 2, w - 1)] + in[max(y - 1, 0) * pitch + x];
}
// expect:
// y: 1 and 0 cells are not computed
// x: 0 and 2 cells are not computed
// function f (out, in) {
//   out[y][x] = in[y][x+2] + in[y-1][x];
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   out[y][x] = in[y][x+2] + in[y-1][x];
// parameter w, h, pitch;
// iterator y, x;
// float out[h][pitch], in[h][pitch];
// points x = 0 : w-2;
// f (out, in);
// return out;
