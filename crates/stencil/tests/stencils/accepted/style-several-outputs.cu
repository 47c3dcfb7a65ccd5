__global__ void gradient(double *gx, double *gy, double *mag, const double *f, int nx, int ny, double hx, double hy) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i > nx - 2 || j < 1 || j > ny - 2) return;
    const int c = j * nx + i;
    double dx = (f[c + 1] - f[c - 1]) / (2.0 * hx);
    double dy = (f[c + nx] - f[c - nx]) / (2.0 * hy);
    gx[c] = dx;
    gy[c] = dy;
    mag[c] = sqrt(dx * dx + dy * dy);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function gradient (gx, gy, mag, f, hx, hy) {
//   double dx = (f[j][i+1] - f[j][i-1]) / (2.0 * hx);
//   double dy = (f[j+1][i] - f[j-1][i]) / (2.0 * hy);
//   gx[j][i] = dx;
//   gy[j][i] = dy;
//   mag[j][i] = sqrt(dx * dx + dy * dy);
// }
// parameter nx, ny;
// iterator j, i;
// double gx[ny][nx], gy[ny][nx], mag[ny][nx], f[ny][nx], hx, hy;
// gradient (gx, gy, mag, f, hx, hy);
// return gx, gy, mag;
