__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[max(i - 1, 0)] + in[min(i + 1, n)];
}
// expect:
// i: 1 and 1 cells are not computed
// function k (out, in) {
//   out[i] = in[i-1] + in[i+1];
// }
// // other points of i = 0 : n, clamped along i:
// //   out[i] = in[i-1] + in[i+1];
// parameter n;
// iterator i;
// double out[n+1], in[n+1];
// k (out, in);
// return out;
