__device__ double minmod(double a, double b) {
    if (a * b <= 0.0) return 0.0;
    return fabs(a) < fabs(b) ? a : b;
}
__global__ void limit(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    out[i] = in[i] + 0.5 * minmod(in[i] - in[i - 1], in[i + 1] - in[i]);
}
// expect:
// i: 1 and 1 cells are not computed
// function limit (out, in) {
//   double a = in[i] - in[i-1];
//   double b = in[i+1] - in[i];
//   out[i] = in[i] + 0.5 * if_at_most(a * b, 0.0, 0.0, if_less(fabs(a), fabs(b), a, b));
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// limit (out, in);
// return out;
