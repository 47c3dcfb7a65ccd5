struct Grid { int nx, ny; double dx, dy; };
__global__ void lap(const double *u, double *l, Grid g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= g.nx - 1 || j >= g.ny - 1) return;
    int c = j * g.nx + i;
    l[c] = (u[c - 1] - 2 * u[c] + u[c + 1]) / (g.dx * g.dx) + (u[c - g.nx] - 2 * u[c] + u[c + g.nx]) / (g.dy * g.dy);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lap (u, l, g_dx, g_dy) {
//   l[j][i] = (u[j][i-1] - 2.0 * u[j][i] + u[j][i+1]) / (g_dx * g_dx) + (u[j-1][i] - 2.0 * u[j][i] + u[j+1][i]) / (g_dy * g_dy);
// }
// parameter g_nx, g_ny;
// iterator j, i;
// double u[g_ny][g_nx], l[g_ny][g_nx], g_dx, g_dy;
// lap (u, l, g_dx, g_dy);
// return l;
