#define R 2
__global__ void skip(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < R || i >= n - R || j < R || j >= m - R) return;
    double sum = 0.0;
    for (int d = -R; d <= R; d++) {
        if (d == 0) continue;
        sum += in[j * n + i + d] / (double)d;
        sum += in[(j + d) * n + i] / (double)d;
    }
    out[j * n + i] = sum;
}
// expect:
// j: 2 and 2 cells are not computed
// i: 2 and 2 cells are not computed
// function skip (out, in) {
//   double sum = 0.0;
//   sum += in[j][i-2] / -2.0;
//   sum += in[j-2][i] / -2.0;
//   sum += in[j][i-1] / -1.0;
//   sum += in[j-1][i] / -1.0;
//   sum += in[j][i+1] / 1.0;
//   sum += in[j+1][i] / 1.0;
//   sum += in[j][i+2] / 2.0;
//   sum += in[j+2][i] / 2.0;
//   out[j][i] = sum;
// }
// parameter n, m;
// iterator j, i;
// double out[m][n], in[m][n];
// skip (out, in);
// return out;
