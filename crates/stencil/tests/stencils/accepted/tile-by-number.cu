#define BX 8
#define BY 4
#define W (BX + 2)
__global__ void f(double *out, const double *in, int m, int n) {
    __shared__ double tile[BY + 2][W];
    const int i = blockIdx.x * BX + threadIdx.x + 1, j = blockIdx.y * BY + threadIdx.y + 1;
    for (int t = threadIdx.y * BX + threadIdx.x; t < (BY + 2) * W; t += BX * BY) {
        const int y = t / W, x = t % W;
        if (blockIdx.x * BX + x < n && blockIdx.y * BY + y < m)
            tile[y][x] = in[(blockIdx.y * BY + y) * n + blockIdx.x * BX + x];
    }
    __syncthreads();
    if (i < n - 1 && j < m - 1)
        out[j * n + i] = tile[threadIdx.y][threadIdx.x] - tile[threadIdx.y + 2][threadIdx.x + 2];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j-1][i-1] - in[j+1][i+1];
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
