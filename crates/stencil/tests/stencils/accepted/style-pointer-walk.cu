__global__ void pw(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    const double *row = in + j * n + i;
    const double *up = row - n, *down = row + n;
    double *o = &out[j * n + i];
    *o = row[-1] + row[1] + *up + *down - 4 * row[0];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function pw (out, in) {
//   out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i] - 4.0 * in[j][i];
// }
// parameter n, m;
// iterator j, i;
// double out[m][n], in[m][n];
// pw (out, in);
// return out;
