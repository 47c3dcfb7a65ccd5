__global__ void project(float *u, float *v, float *w, const float *p, int nx, int ny, int nz, float s) {
    for (int k = blockIdx.z * blockDim.z + threadIdx.z + 1; k < nz; k += gridDim.z * blockDim.z)
        for (int j = blockIdx.y * blockDim.y + threadIdx.y + 1; j < ny; j += gridDim.y * blockDim.y)
            for (int i = blockIdx.x * blockDim.x + threadIdx.x + 1; i < nx; i += gridDim.x * blockDim.x) {
                int c = (k * ny + j) * nx + i;
                u[c] -= s * (p[c] - p[c - 1]);
                v[c] -= s * (p[c] - p[c - nx]);
                w[c] -= s * (p[c] - p[c - nx * ny]);
            }
}
// expect:
// k: 1 and 0 cells are not computed
// j: 1 and 0 cells are not computed
// i: 1 and 0 cells are not computed
// function project (u, v, w, p, s) {
//   u[k][j][i] -= s * (p[k][j][i] - p[k][j][i-1]);
//   v[k][j][i] -= s * (p[k][j][i] - p[k][j-1][i]);
//   w[k][j][i] -= s * (p[k][j][i] - p[k-1][j][i]);
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// float u[nz][ny][nx], v[nz][ny][nx], w[nz][ny][nx], p[nz][ny][nx], s;
// project (u, v, w, p, s);
// return u, v, w;
