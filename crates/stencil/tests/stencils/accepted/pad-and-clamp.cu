// Clamped along one dimension, zero beyond the ends of the other one.
__global__ void f(float *out, const float *in, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    int below = max(y - 1, 0);
    float left = x > 0 ? in[y * n + x - 1] : 0.0f;
    out[y * n + x] = left + in[below * n + x];
}
// expect:
// y: 1 and 0 cells are not computed
// x: 1 and 0 cells are not computed
// function f (out, in) {
//   float left = in[y][x-1];
//   out[y][x] = left + in[y-1][x];
// }
// // other points of y = 0 : m, x = 0 : n, clamped along y:
// //   float left = (x >= 1 ? in[y][x-1] : 0.0f);
// //   out[y][x] = left + in[y-1][x];
// parameter m, n;
// iterator y, x;
// float out[m][n], in[m][n];
// f (out, in);
// return out;
