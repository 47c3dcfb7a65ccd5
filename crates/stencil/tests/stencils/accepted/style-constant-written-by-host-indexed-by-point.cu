__constant__ double w[4096];
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = w[i] * in[i - 1] + w[i - 1] * in[i + 1];
}
// expect:
// i: 1 and 1 cells are not computed
// function k (out, in, w_of_file) {
//   out[i] = w_of_file[i] * in[i-1] + w_of_file[i-1] * in[i+1];
// }
// // `w_of_file` is `w` of the file
// parameter n;
// iterator i;
// double out[n], in[n], w_of_file[4096];
// points i = 1 : n-1;
// k (out, in, w_of_file);
// return out;
