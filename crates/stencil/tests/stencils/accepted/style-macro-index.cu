#define IDX(i, j, k) ((i) + nx * ((j) + ny * (k)))
#define SQ(x) ((x) * (x))
__global__ void mi(double *o, const double *a, const double *b, int nx, int ny, int nz) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int j = threadIdx.y + blockIdx.y * blockDim.y;
    int k = threadIdx.z + blockIdx.z * blockDim.z;
    if (i >= 2 && i < nx - 2 && j >= 2 && j < ny - 2 && k >= 2 && k < nz - 2)
        o[IDX(i, j, k)] = SQ(a[IDX(i - 2, j, k)] - a[IDX(i + 2, j, k)]) + SQ(b[IDX(i, j - 2, k)]) + a[IDX(i, j, k - 2)] * b[IDX(i, j, k + 2)];
}
// expect:
// k: 2 and 2 cells are not computed
// j: 2 and 2 cells are not computed
// i: 2 and 2 cells are not computed
// function mi (o, a, b) {
//   o[k][j][i] = (a[k][j][i-2] - a[k][j][i+2]) * (a[k][j][i-2] - a[k][j][i+2]) + b[k][j-2][i] * b[k][j-2][i] + a[k-2][j][i] * b[k+2][j][i];
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double o[nz][ny][nx], a[nz][ny][nx], b[nz][ny][nx];
// points j = 2 : ny-2;
// mi (o, a, b);
// return o;
