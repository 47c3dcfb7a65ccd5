// One dimension, in place.
__global__ void line(float* y, const float* x, float a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) y[i] += a * (x[i - 1] + x[i + 1]);
}
// expect:
// i: 1 and 1 cells are not computed
// function line (y, x, a) {
//   y[i] += a * (x[i-1] + x[i+1]);
// }
// parameter n;
// iterator i;
// float y[n], x[n], a;
// line (y, x, a);
// return y;
