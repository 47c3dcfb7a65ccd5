__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    __shared__ double tile[32][33];
    if (i < n && j < m) tile[threadIdx.y][threadIdx.x] = in[j * n + i];
    __syncthreads();
    if (i < n && j < m) out[j * n + i] = tile[threadIdx.y][threadIdx.x];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j][i];
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
