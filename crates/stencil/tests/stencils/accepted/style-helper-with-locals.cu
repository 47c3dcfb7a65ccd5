__device__ double second(const double *u, int p, int stride) {
    double a = u[p - stride];
    double b = u[p + stride];
    return a - 2.0 * u[p] + b;
}
__global__ void lap3(double *v, const double *u, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || j < 1 || k < 1 || i >= nx - 1 || j >= ny - 1 || k >= nz - 1) return;
    int p = i + nx * (j + ny * k);
    v[p] = second(u, p, 1) + second(u, p, nx) + second(u, p, nx * ny);
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lap3 (v, u) {
//   v[k][j][i] = u[k][j][i-1] - 2.0 * u[k][j][i] + u[k][j][i+1] + (u[k][j-1][i] - 2.0 * u[k][j][i] + u[k][j+1][i]) + (u[k-1][j][i] - 2.0 * u[k][j][i] + u[k+1][j][i]);
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double v[nz][ny][nx], u[nz][ny][nx];
// lap3 (v, u);
// return v;
