__global__ void ring(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(i + n - 1) % n] + in[(i + 1) % n] - 2.0 * in[i];
}
// expect:
// i: 1 and 1 cells are not computed
// function ring (out, in) {
//   out[i] = in[i-1] + in[i+1] - 2.0 * in[i];
// }
// // other points of i = 0 : n, wrapped along i:
// //   out[i] = in[i-1] + in[i+1] - 2.0 * in[i];
// parameter n;
// iterator i;
// double out[n], in[n];
// ring (out, in);
// return out;
