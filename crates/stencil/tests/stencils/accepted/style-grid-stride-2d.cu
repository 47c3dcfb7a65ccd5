__global__ void gs2(double *out, const double *in, int n, int m) {
    for (int j = blockIdx.y * blockDim.y + threadIdx.y + 1; j < m - 1; j += gridDim.y * blockDim.y)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x + 1; i < n - 1; i += gridDim.x * blockDim.x)
            out[j * n + i] = in[j * n + i - 1] + in[j * n + i + 1] + in[(j - 1) * n + i] + in[(j + 1) * n + i];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function gs2 (out, in) {
//   out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i];
// }
// parameter n, m;
// iterator j, i;
// double out[m][n], in[m][n];
// gs2 (out, in);
// return out;
