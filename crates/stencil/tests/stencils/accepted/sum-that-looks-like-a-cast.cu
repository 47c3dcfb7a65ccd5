typedef float real;
#define IDX(i, j, k) ((i)+(j)*nx+(k)*nx*ny)
__global__ void heat(const real *__restrict__ u, real *__restrict__ un, const real alpha, const real dt,
                     const unsigned int nx, const unsigned int ny, const unsigned int nz) {
    const unsigned int i = threadIdx.x + blockIdx.x * blockDim.x;
    const unsigned int j = threadIdx.y + blockIdx.y * blockDim.y;
    const unsigned int k = threadIdx.z + blockIdx.z * blockDim.z;
    const real c = alpha * dt;
    if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1 && k > 0 && k < nz - 1) {
        const int id = (int)(i) + (j)*nx + (k) * nx * ny;
        const real lap = u[id - 1] + u[id + 1] + u[id - nx] + u[id + nx] + u[id - nx * ny] + u[id + nx * ny];
        un[IDX(i, j, k)] = u[id] + c * (lap - 6.0f * u[id]);
    }
}

// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function heat (u, un, alpha, dt) {
//   float c = alpha * dt;
//   float lap = u[k][j][i-1] + u[k][j][i+1] + u[k][j-1][i] + u[k][j+1][i] + u[k-1][j][i] + u[k+1][j][i];
//   un[k][j][i] = u[k][j][i] + c * (lap - 6.0f * u[k][j][i]);
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// float u[nz][ny][nx], un[nz][ny][nx], alpha, dt;
// heat (u, un, alpha, dt);
// return un;
