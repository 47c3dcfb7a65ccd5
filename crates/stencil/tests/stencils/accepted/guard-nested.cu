__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0) {
        double west = in[j * n + i - 1];
        if (i < n && j < m) {
            double sum = west + in[j * n + i];
            sum *= 0.5;
            out[j * n + i] = sum;
        }
    }
}

// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 0 cells are not computed
// function f (out, in) {
//   double west = in[j][i-1];
//   double sum = west + in[j][i];
//   double sum_2 = sum * 0.5;
//   out[j][i] = sum_2;
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
