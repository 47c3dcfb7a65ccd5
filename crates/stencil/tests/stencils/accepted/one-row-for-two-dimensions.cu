__global__ void f(double *out, const double *in, const double *w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n - 1) out[j * n + i] = w[i] * w[j + 1] * in[j * n + i] + w[3];
}

// expect:
// j: 0 and 1 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in, w) {
//   out[j][i] = w[i] * w[j+1] * in[j][i] + w[3];
// }
// parameter n;
// iterator j, i;
// double out[n][n], in[n][n], w[n];
// f (out, in, w);
// return out;
