#define B 8
#define R 2
__global__ void f(double *out, const double *in, int m, int n) {
    __shared__ double tile[B + 2 * R][B + 2 * R];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    for (int y = threadIdx.y; y < B + 2 * R; y += blockDim.y) {
        for (int x = threadIdx.x; x < B + 2 * R; x += blockDim.x) {
            const int gx = (int)(blockIdx.x * blockDim.x) + x - R;
            const int gy = (int)(blockIdx.y * blockDim.y) + y - R;
            tile[y][x] = (gx >= 0 && gx < n && gy >= 0 && gy < m) ? in[gy * n + gx] : 0.0;
        }
    }
    __syncthreads();
    if (i < R || i >= n - R || j < R || j >= m - R) return;
    double sum = 0;
    for (int y = 0; y <= 2 * R; y++)
        for (int x = 0; x <= 2 * R; x++) sum += 0.04 * tile[threadIdx.y + y][threadIdx.x + x];
    out[j * n + i] = sum;
}
// expect:
// j: 2 and 2 cells are not computed
// i: 2 and 2 cells are not computed
// function f (out, in) {
//   double sum = 0.0;
//   sum += 0.04 * in[j-2][i-2];
//   sum += 0.04 * in[j-2][i-1];
//   sum += 0.04 * in[j-2][i];
//   sum += 0.04 * in[j-2][i+1];
//   sum += 0.04 * in[j-2][i+2];
//   sum += 0.04 * in[j-1][i-2];
//   sum += 0.04 * in[j-1][i-1];
//   sum += 0.04 * in[j-1][i];
//   sum += 0.04 * in[j-1][i+1];
//   sum += 0.04 * in[j-1][i+2];
//   sum += 0.04 * in[j][i-2];
//   sum += 0.04 * in[j][i-1];
//   sum += 0.04 * in[j][i];
//   sum += 0.04 * in[j][i+1];
//   sum += 0.04 * in[j][i+2];
//   sum += 0.04 * in[j+1][i-2];
//   sum += 0.04 * in[j+1][i-1];
//   sum += 0.04 * in[j+1][i];
//   sum += 0.04 * in[j+1][i+1];
//   sum += 0.04 * in[j+1][i+2];
//   sum += 0.04 * in[j+2][i-2];
//   sum += 0.04 * in[j+2][i-1];
//   sum += 0.04 * in[j+2][i];
//   sum += 0.04 * in[j+2][i+1];
//   sum += 0.04 * in[j+2][i+2];
//   out[j][i] = sum;
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
