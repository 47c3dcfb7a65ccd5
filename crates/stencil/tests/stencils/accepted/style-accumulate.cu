__global__ void wave(double *prev, const double *cur, const double *vel, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
    int p = j * nx + i;
    double l = cur[p - 1] + cur[p + 1] + cur[p - nx] + cur[p + nx] - 4.0 * cur[p];
    prev[p] = 2.0 * cur[p] - prev[p] + vel[p] * l;
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function wave (prev, cur, vel) {
//   double l = cur[j][i-1] + cur[j][i+1] + cur[j-1][i] + cur[j+1][i] - 4.0 * cur[j][i];
//   prev[j][i] = 2.0 * cur[j][i] - prev[j][i] + vel[j][i] * l;
// }
// parameter nx, ny;
// iterator j, i;
// double prev[ny][nx], cur[ny][nx], vel[ny][nx];
// wave (prev, cur, vel);
// return prev;
