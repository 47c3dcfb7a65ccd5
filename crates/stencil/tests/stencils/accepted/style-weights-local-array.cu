__global__ void wla(double *out, const double *in, int n) {
    const double w[5] = {-1.0 / 12, 8.0 / 12, 0.0, -8.0 / 12, 1.0 / 12};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 2 || i > n - 3) return;
    double s = 0;
#pragma unroll
    for (int k = 0; k < 5; ++k) s += w[k] * in[i + k - 2];
    out[i] = s;
}
// expect:
// i: 2 and 2 cells are not computed
// function wla (out, in) {
//   double s = 0.0;
//   s += -0.08333333333333333 * in[i-2];
//   s += 0.6666666666666666 * in[i-1];
//   s += 0.0 * in[i];
//   s += -0.6666666666666666 * in[i+1];
//   s += 0.08333333333333333 * in[i+2];
//   out[i] = s;
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// wla (out, in);
// return out;
