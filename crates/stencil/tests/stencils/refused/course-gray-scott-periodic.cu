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
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[course-gray-scott-periodic.cu:5:14]
//  4 │     if (x >= n || y >= n) return;
//  5 │     int xm = (x + n - 1) % n, xp = (x + 1) % n, ym = (y + n - 1) % n, yp = (y + 1) % n;
//    ·              ───────┬───────
//    ·                     ╰── an index that wraps at the border, a colour, a row of one long array?
//  6 │     double uc = u[y * n + x], vc = v[y * n + x];
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
