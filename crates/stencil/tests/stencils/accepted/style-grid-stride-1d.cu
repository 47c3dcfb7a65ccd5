__global__ void gs(double *out, const double *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        if (i > 0 && i < n - 1) out[i] = 0.5 * in[i] + 0.25 * (in[i - 1] + in[i + 1]);
}
// expect:
// i: 1 and 1 cells are not computed
// function gs (out, in) {
//   out[i] = 0.5 * in[i] + 0.25 * (in[i-1] + in[i+1]);
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// gs (out, in);
// return out;
