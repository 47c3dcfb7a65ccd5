__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int at = j * n + i;
    if (i == 0 || i == n - 1 || j == 0 || j == m - 1) {
        out[at] = in[at];
        return;
    }
    out[at] = 0.25 * (in[at - 1] + in[at + 1] + in[at - n] + in[at + n]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = 0.25 * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
// }
// // other points of j = 0 : m, i = 0 : n:
// //   out[j][i] = in[j][i];
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
