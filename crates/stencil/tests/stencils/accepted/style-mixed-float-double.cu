__global__ void mixed(float *out, const float *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= 1 && i < n - 1 && j >= 1 && j < m - 1)
        out[j * n + i] = 0.25 * (in[j * n + i - 1] + in[j * n + i + 1] + in[(j - 1) * n + i] + in[(j + 1) * n + i]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function mixed (out, in) {
//   out[j][i] = 0.25 * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
// }
// parameter n, m;
// iterator j, i;
// float out[m][n], in[m][n];
// mixed (out, in);
// return out;
