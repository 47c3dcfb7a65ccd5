__global__ void periodic(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int l = (i == 0) ? n - 1 : i - 1;
    int r = (i == n - 1) ? 0 : i + 1;
    int d = (j == 0) ? m - 1 : j - 1;
    int u = (j == m - 1) ? 0 : j + 1;
    out[j * n + i] = 0.25 * (in[j * n + l] + in[j * n + r] + in[d * n + i] + in[u * n + i]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function periodic (out, in) {
//   out[j][i] = 0.25 * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
// }
// // other points of j = 0 : m, i = 0 : n, wrapped along j, wrapped along i:
// //   out[j][i] = 0.25 * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
// parameter n, m;
// iterator j, i;
// double out[m][n], in[m][n];
// periodic (out, in);
// return out;
