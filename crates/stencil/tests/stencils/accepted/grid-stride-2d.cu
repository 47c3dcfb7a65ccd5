// launch: 1 1 1 4 2 1
__global__ void f(double *out, const double *in, int m, int n) {
    const int step = blockDim.x * gridDim.x;
    for (unsigned j = blockIdx.y * blockDim.y + threadIdx.y; j < m; j += blockDim.y * gridDim.y) {
        for (int i = 1 + blockIdx.x * blockDim.x + threadIdx.x; i < n - 1; i += step) {
            if (j == 0) continue;
            out[j * n + i] = in[j * n + i - 1] - in[(j - 1) * n + i + 1];
        }
    }
}
// expect:
// j: 1 and 0 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j][i-1] - in[j-1][i+1];
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
