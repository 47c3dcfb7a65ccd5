__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = (1 / 2) * (in[i - 1] + in[i + 1]) + 3 / 2 * in[i];
}
// expect:
// i: 1 and 1 cells are not computed
// function k (out, in) {
//   out[i] = 0.0 * (in[i-1] + in[i+1]) + 1.0 * in[i];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// k (out, in);
// return out;
