__global__ void f(double *out, const double *in, double c, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n || j >= m) return;
    double a, b = in[j * n + i];
    a = b - in[j * n + i - 1];
    a = a + b;
    a = fabs(a);
    {
        double s = max(a, 1e-12);
        out[j * n + i] = sqrt(s) * fma(a, b, c) / (1 + 1);
    }
    out[j * n + i] -= pow(b, 2);
}

// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 0 cells are not computed
// function f (out, in, c) {
//   double b = in[j][i];
//   double a = b - in[j][i-1];
//   a += b;
//   double a_2 = fabs(a);
//   double s = fmax(a_2, 1e-12);
//   out[j][i] = sqrt(s) * fma(a_2, b, c) / 2.0;
//   out[j][i] -= pow(b, 2.0);
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n], c;
// f (out, in, c);
// return out;
