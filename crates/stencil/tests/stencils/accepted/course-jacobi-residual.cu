__global__ void jacobi(const double *u, double *unew, const double *f, double *res, int n, double h) {
    unsigned int i = blockIdx.y * blockDim.y + threadIdx.y + 1;
    unsigned int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i >= n - 1 || j >= n - 1) return;
    double north = u[(i - 1) * n + j];
    double south = u[(i + 1) * n + j];
    double west = u[i * n + j - 1];
    double east = u[i * n + (j + 1)];
    double v = 0.25 * (north + south + west + east - h * h * f[i * n + j]);
    unew[i * n + j] = v;
    res[i * n + j] = fabs(v - u[i * n + j]);
}
// expect:
// i: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// function jacobi (u, unew, f, res, h) {
//   double north = u[i-1][j];
//   double south = u[i+1][j];
//   double west = u[i][j-1];
//   double east = u[i][j+1];
//   double v = 0.25 * (north + south + west + east - h * h * f[i][j]);
//   unew[i][j] = v;
//   res[i][j] = fabs(v - u[i][j]);
// }
// parameter n;
// iterator i, j;
// double u[n][n], unew[n][n], f[n][n], res[n][n], h;
// jacobi (u, unew, f, res, h);
// return unew, res;
