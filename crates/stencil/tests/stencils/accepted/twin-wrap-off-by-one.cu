__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int l = i == 0 ? n : i - 1;
    out[i] = in[l] + in[i];
}
// expect:
// i: 1 and 1 cells are not computed
// function k (out, in) {
//   out[i] = in[i-1] + in[i];
// }
// // other points of i = 0 : n, wrapped along i:
// //   out[i] = in[i-1] + in[i];
// parameter n;
// iterator i;
// double out[n+1], in[n+1];
// points i = 1 : n;
// k (out, in);
// return out;
