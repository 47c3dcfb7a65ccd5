__global__ void f(double *out, const double *__restrict__ in, int l, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = m * n;
    if (i < n && j < m) {
        for (int k = 1; k < l - 1; k++) {
            const double *here = in + k * plane + j * n + i;
            const double *above = here + plane;
            out[k * plane + j * n + i] = *here + above[0] + here[-plane] + __ldg(&here[1 - 1]);
        }
    }
}

// expect:
// k: 1 and 1 cells are not computed
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   out[k][j][i] = in[k][j][i] + in[k+1][j][i] + in[k-1][j][i] + in[k][j][i];
// }
// parameter l, m, n;
// iterator k, j, i;
// double out[l][m][n], in[l][m][n];
// f (out, in);
// return out;
