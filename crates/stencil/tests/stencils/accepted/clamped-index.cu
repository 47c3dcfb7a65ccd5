__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int west = i - 1;
    if (west < 0) west = 0;
    out[j * n + i] = in[j * n + west];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 0 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j][i-1];
// }
// // other points of j = 0 : m, i = 0 : n, clamped along i:
// //   out[j][i] = in[j][i-1];
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
