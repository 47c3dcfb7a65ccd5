__global__ void chemical(const double *c, double *mu, int nx, int ny, double kappa, double h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && j > 0 && i < nx - 1 && j < ny - 1) {
        size_t id = (size_t)j * nx + i;
        double l = (c[id + 1] + c[id - 1] + c[id + nx] + c[id - nx] - 4.0 * c[id]) / (h * h);
        mu[id] = c[id] * c[id] * c[id] - c[id] - kappa * l;
    }
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function chemical (c, mu, kappa, h) {
//   double l = (c[j][i+1] + c[j][i-1] + c[j+1][i] + c[j-1][i] - 4.0 * c[j][i]) / (h * h);
//   mu[j][i] = c[j][i] * c[j][i] * c[j][i] - c[j][i] - kappa * l;
// }
// parameter nx, ny;
// iterator j, i;
// double c[ny][nx], mu[ny][nx], kappa, h;
// chemical (c, mu, kappa, h);
// return mu;
