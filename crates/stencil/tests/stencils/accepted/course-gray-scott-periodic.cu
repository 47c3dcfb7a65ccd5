__global__ void gs(const double *u, const double *v, double *un, double *vn, int n, double Du, double Dv, double F, double K, double dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    int xm = (x + n - 1) % n, xp = (x + 1) % n, ym = (y + n - 1) % n, yp = (y + 1) % n;
    double uc = u[y * n + x], vc = v[y * n + x];
    double lu = u[y * n + xm] + u[y * n + xp] + u[ym * n + x] + u[yp * n + x] - 4.0 * uc;
    double lv = v[y * n + xm] + v[y * n + xp] + v[ym * n + x] + v[yp * n + x] - 4.0 * vc;
    double r = uc * vc * vc;
    un[y * n + x] = uc + dt * (Du * lu - r + F * (1.0 - uc));
    vn[y * n + x] = vc + dt * (Dv * lv + r - (F + K) * vc);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function gs (u, v, un, vn, Du, Dv, F, K, dt) {
//   double uc = u[y][x];
//   double vc = v[y][x];
//   double lu = u[y][x-1] + u[y][x+1] + u[y-1][x] + u[y+1][x] - 4.0 * uc;
//   double lv = v[y][x-1] + v[y][x+1] + v[y-1][x] + v[y+1][x] - 4.0 * vc;
//   double r = uc * vc * vc;
//   un[y][x] = uc + dt * (Du * lu - r + F * (1.0 - uc));
//   vn[y][x] = vc + dt * (Dv * lv + r - (F + K) * vc);
// }
// // other points of y = 0 : n, x = 0 : n, wrapped along y, wrapped along x:
// //   double uc = u[y][x];
// //   double vc = v[y][x];
// //   double lu = u[y][x-1] + u[y][x+1] + u[y-1][x] + u[y+1][x] - 4.0 * uc;
// //   double lv = v[y][x-1] + v[y][x+1] + v[y-1][x] + v[y+1][x] - 4.0 * vc;
// //   double r = uc * vc * vc;
// //   un[y][x] = uc + dt * (Du * lu - r + F * (1.0 - uc));
// //   vn[y][x] = vc + dt * (Dv * lv + r - (F + K) * vc);
// parameter n;
// iterator y, x;
// double u[n][n], v[n][n], un[n][n], vn[n][n], Du, Dv, F, K, dt;
// gs (u, v, un, vn, Du, Dv, F, K, dt);
// return un, vn;
