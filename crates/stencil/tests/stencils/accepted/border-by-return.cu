__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    if (i < 2) {
        out[j * n + i] = 0.0;
        return;
    }
    out[j * n + i] = in[j * n + i - 2];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 2 and 0 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j][i-2];
// }
// // other points of j = 0 : m, i = 0 : n:
// //   out[j][i] = 0.0;
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
