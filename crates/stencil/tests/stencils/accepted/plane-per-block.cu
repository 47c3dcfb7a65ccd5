__global__ void f(double *out, const double *in, int nx, int ny, int nz) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int j = blockIdx.y * blockDim.y + threadIdx.y + 1;
    const int z = blockIdx.z + 1;
    if (i < nx - 1 && j < ny - 1 && z < nz - 1) {
        const int c = (z * ny + j) * nx + i;
        out[c] = in[c - nx * ny] + in[c + nx * ny] - in[c + 1];
    }
}
// expect:
// z: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[z][j][i] = in[z-1][j][i] + in[z+1][j][i] - in[z][j][i+1];
// }
// parameter nx, ny, nz;
// iterator z, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// points j = 1 : ny-1, i = 1 : nx-1;
// f (out, in);
// return out;
