#define BX 8
#define BY 4
__global__ void f(double *out, const double *in, int m, int n) {
    __shared__ double tile[BY + 2][BX + 2];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int i = blockIdx.x * BX + tx;
    const int j = blockIdx.y * BY + ty;
    if (i < n && j < m) {
        tile[ty + 1][tx + 1] = in[j * n + i];
        if (tx == 0 && i > 0) tile[ty + 1][0] = in[j * n + i - 1];
        if (tx == BX - 1 && i < n - 1) tile[ty + 1][BX + 1] = in[j * n + i + 1];
        if (ty == 0 && j > 0) tile[0][tx + 1] = in[(j - 1) * n + i];
        if (ty == BY - 1 && j < m - 1) tile[BY + 1][tx + 1] = in[(j + 1) * n + i];
    }
    __syncthreads();
    if (i > 0 && i < n - 1 && j > 0 && j < m - 1)
        out[j * n + i] = tile[ty][tx + 1] + tile[ty + 2][tx + 1] + tile[ty + 1][tx] + tile[ty + 1][tx + 2]
                       - 4.0 * tile[ty + 1][tx + 1];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j-1][i] + in[j+1][i] + in[j][i-1] + in[j][i+1] - 4.0 * in[j][i];
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
