__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    const double w[3] = {0.25, 0.5, 0.25};
    if (i >= 1 && i < n - 1 && j >= 1 && j < m - 1) {
        double sum = 0.0;
        #pragma unroll
        for (int dj = -1; dj <= 1; dj++) {
            for (int di = -1; di <= 1; di++) {
                if (dj == 0 && di == 0) continue;
                double weight = w[dj + 1] * w[di + 1];
                sum += weight * in[(j + dj) * n + (i + di)];
            }
        }
        out[j * n + i] = sum;
    }
}

// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   double sum = 0.0;
//   sum += 0.0625 * in[j-1][i-1];
//   sum += 0.125 * in[j-1][i];
//   sum += 0.0625 * in[j-1][i+1];
//   sum += 0.125 * in[j][i-1];
//   sum += 0.125 * in[j][i+1];
//   sum += 0.0625 * in[j+1][i-1];
//   sum += 0.125 * in[j+1][i];
//   sum += 0.0625 * in[j+1][i+1];
//   out[j][i] = sum;
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
