__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) { float t = in[i - 1] + in[i + 1]; out[i] = t * 0.1f; }
}
// expect:
// i: 1 and 1 cells are not computed
// function k (out, in) {
//   float t = in[i-1] + in[i+1];
//   out[i] = t * 0.1f;
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// k (out, in);
// return out;
