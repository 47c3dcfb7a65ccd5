#define NX 1024
#define NY 768
#define IDX(i, j) ((i) * NY + (j))
__global__ void heat_step(const double *T_old, double *T_new, const double alpha, const double dt, const double dx2, const double dy2) {
    const int j = threadIdx.x + blockDim.x * blockIdx.x;
    const int i = threadIdx.y + blockDim.y * blockIdx.y;
    if (i > 0 && i < NX - 1 && j > 0 && j < NY - 1) {
        double lap = (T_old[IDX(i + 1, j)] - 2.0 * T_old[IDX(i, j)] + T_old[IDX(i - 1, j)]) / dx2
                   + (T_old[IDX(i, j + 1)] - 2.0 * T_old[IDX(i, j)] + T_old[IDX(i, j - 1)]) / dy2;
        T_new[IDX(i, j)] = T_old[IDX(i, j)] + alpha * dt * lap;
    }
}
// expect:
// i: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// function heat_step (T_old, T_new, alpha, dt, dx2, dy2) {
//   double lap = (T_old[i+1][j] - 2.0 * T_old[i][j] + T_old[i-1][j]) / dx2 + (T_old[i][j+1] - 2.0 * T_old[i][j] + T_old[i][j-1]) / dy2;
//   T_new[i][j] = T_old[i][j] + alpha * dt * lap;
// }
// iterator i, j;
// double T_old[1024][768], T_new[1024][768], alpha, dt, dx2, dy2;
// heat_step (T_old, T_new, alpha, dt, dx2, dy2);
// return T_new;
