__global__ void wp(double *out, const double *in, const double *w, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    double s = 0;
    for (int a = -1; a <= 1; a++)
        for (int b = -1; b <= 1; b++)
            s += w[(a + 1) * 3 + b + 1] * in[(j + a) * n + i + b];
    out[j * n + i] = s;
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function wp (out, in, w) {
//   double s = 0.0;
//   s += w[0] * in[j-1][i-1];
//   s += w[1] * in[j-1][i];
//   s += w[2] * in[j-1][i+1];
//   s += w[3] * in[j][i-1];
//   s += w[4] * in[j][i];
//   s += w[5] * in[j][i+1];
//   s += w[6] * in[j+1][i-1];
//   s += w[7] * in[j+1][i];
//   s += w[8] * in[j+1][i+1];
//   out[j][i] = s;
// }
// parameter n, m;
// iterator j, i;
// double out[m][n], in[m][n], w[9];
// wp (out, in, w);
// return out;
