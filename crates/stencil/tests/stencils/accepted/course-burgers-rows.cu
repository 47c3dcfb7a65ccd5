#define COLS 301
__global__ void burgers(double (*un)[COLS], double (*vn)[COLS], const double (*u)[COLS], const double (*v)[COLS], int rows, double dt, double dx, double nu) {
    int j = blockDim.x * blockIdx.x + threadIdx.x;
    int i = blockDim.y * blockIdx.y + threadIdx.y;
    if (i < 1 || i > rows - 2 || j < 1 || j > COLS - 2) return;
    un[i][j] = u[i][j] - dt / dx * u[i][j] * (u[i][j] - u[i][j - 1]) - dt / dx * v[i][j] * (u[i][j] - u[i - 1][j])
             + nu * dt / (dx * dx) * (u[i][j + 1] - 2 * u[i][j] + u[i][j - 1]) + nu * dt / (dx * dx) * (u[i + 1][j] - 2 * u[i][j] + u[i - 1][j]);
    vn[i][j] = v[i][j] - dt / dx * u[i][j] * (v[i][j] - v[i][j - 1]) - dt / dx * v[i][j] * (v[i][j] - v[i - 1][j])
             + nu * dt / (dx * dx) * (v[i][j + 1] - 2 * v[i][j] + v[i][j - 1]) + nu * dt / (dx * dx) * (v[i + 1][j] - 2 * v[i][j] + v[i - 1][j]);
}
// expect:
// i: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// function burgers (un, vn, u, v, dt, dx, nu) {
//   un[i][j] = u[i][j] - dt / dx * u[i][j] * (u[i][j] - u[i][j-1]) - dt / dx * v[i][j] * (u[i][j] - u[i-1][j]) + nu * dt / (dx * dx) * (u[i][j+1] - 2.0 * u[i][j] + u[i][j-1]) + nu * dt / (dx * dx) * (u[i+1][j] - 2.0 * u[i][j] + u[i-1][j]);
//   vn[i][j] = v[i][j] - dt / dx * u[i][j] * (v[i][j] - v[i][j-1]) - dt / dx * v[i][j] * (v[i][j] - v[i-1][j]) + nu * dt / (dx * dx) * (v[i][j+1] - 2.0 * v[i][j] + v[i][j-1]) + nu * dt / (dx * dx) * (v[i+1][j] - 2.0 * v[i][j] + v[i-1][j]);
// }
// parameter rows;
// iterator i, j;
// double un[rows][301], vn[rows][301], u[rows][301], v[rows][301], dt, dx, nu;
// burgers (un, vn, u, v, dt, dx, nu);
// return un, vn;
