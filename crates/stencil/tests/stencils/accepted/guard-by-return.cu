__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || !(i < n - 1) || j + 1 >= m) return;
    out[j * n + i] = in[(j - 1) * n + i - 1] + in[(j + 1) * n + i + 1];
}

// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j-1][i-1] + in[j+1][i+1];
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
