typedef struct { int nx; int ny; int nz; } dim_t;
__global__ void lap(float *__restrict__ out, const float *__restrict__ in, const dim_t d, const float c0, const float c1) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    const int j = threadIdx.y + blockIdx.y * blockDim.y;
    if (i < 1 || j < 1 || i > d.nx - 2 || j > d.ny - 2) return;
    for (int k = 1; k < d.nz - 1; k++) {
        const int c = (k * d.ny + j) * d.nx + i;
        out[c] = c0 * in[c] + c1 * (in[c - 1] + in[c + 1] + in[c - d.nx] + in[c + d.nx] + in[c - d.nx * d.ny] + in[c + d.nx * d.ny]);
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lap (out, in, c0, c1) {
//   out[k][j][i] = c0 * in[k][j][i] + c1 * (in[k][j][i-1] + in[k][j][i+1] + in[k][j-1][i] + in[k][j+1][i] + in[k-1][j][i] + in[k+1][j][i]);
// }
// parameter d_nx, d_ny, d_nz;
// iterator k, j, i;
// float out[d_nz][d_ny][d_nx], in[d_nz][d_ny][d_nx], c0, c1;
// lap (out, in, c0, c1);
// return out;
