// All three dimensions: one of threads, two of loops.
__global__ void f(float *out, const float *in, float c, int l, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 1; k < l; ++k) {
        for (int j = 0; j <= m - 2; j += 1) {
            int at = (k * m + j) * n + i;
            out[at] = c * (in[at - m * n] + in[at + n]) + 0.5f * in[at];
        }
    }
}

// expect:
// k: 1 and 0 cells are not computed
// j: 0 and 1 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in, c) {
//   out[k][j][i] = c * (in[k-1][j][i] + in[k][j+1][i]) + 0.5f * in[k][j][i];
// }
// parameter l, m, n;
// iterator k, j, i;
// float out[l][m][n], in[l][m][n], c;
// f (out, in, c);
// return out;
