__global__ void neumann(const double *a, double *b, int nx, int ny, double k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < nx && j < ny) {
        int p = j * nx + i;
        double left  = i > 0      ? a[p - 1]  : a[p];
        double right = i < nx - 1 ? a[p + 1]  : a[p];
        double down  = j > 0      ? a[p - nx] : a[p];
        double up    = j < ny - 1 ? a[p + nx] : a[p];
        b[p] = a[p] + k * (left + right + up + down - 4.0 * a[p]);
    }
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function neumann (a, b, k) {
//   double left = a[j][i-1];
//   double right = a[j][i+1];
//   double down = a[j-1][i];
//   double up = a[j+1][i];
//   b[j][i] = a[j][i] + k * (left + right + up + down - 4.0 * a[j][i]);
// }
// // other points of j = 0 : ny, i = 0 : nx, clamped along j, clamped along i:
// //   double left = a[j][i-1];
// //   double right = a[j][i+1];
// //   double down = a[j-1][i];
// //   double up = a[j+1][i];
// //   b[j][i] = a[j][i] + k * (left + right + up + down - 4.0 * a[j][i]);
// parameter nx, ny;
// iterator j, i;
// double a[ny][nx], b[ny][nx], k;
// neumann (a, b, k);
// return b;
