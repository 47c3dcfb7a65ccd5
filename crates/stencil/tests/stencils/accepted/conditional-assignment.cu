__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    double west = 0.0;
    if (i > 0) west = in[j * n + i - 1];
    out[j * n + i] = west;
}

// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 0 cells are not computed
// function f (out, in) {
//   double west = in[j][i-1];
//   out[j][i] = west;
// }
// // other points of j = 0 : m, i = 0 : n:
// //   double west = (i >= 1 ? in[j][i-1] : 0.0);
// //   out[j][i] = west;
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
