__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j < m && i < n) {
        double a = in[j * n + i];
        out[j * n + i] = a > 0.0 ? a : 0.0;
    }
}

// expect:
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   double a = in[j][i];
//   out[j][i] = if_less(0.0, a, a, 0.0);
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
