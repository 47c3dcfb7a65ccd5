// The border is part of a loop over planes, and one of three outputs' worth of faces.
__global__ void column(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    for (int k = 0; k < nz; ++k) {
        int p = (k * ny + j) * nx + i;
        if (i == 0 || i == nx - 1 || j == 0 || j == ny - 1 || k == 0 || k >= nz - 2) {
            out[p] = in[p];
            continue;
        }
        out[p] = in[p - 1] + in[p + 1] + in[p - nx] + in[p + nx] + in[p - nx * ny] + in[p + 2 * nx * ny];
    }
}
// expect:
// k: 1 and 2 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function column (out, in) {
//   out[k][j][i] = in[k][j][i-1] + in[k][j][i+1] + in[k][j-1][i] + in[k][j+1][i] + in[k-1][j][i] + in[k+2][j][i];
// }
// // other points of k = 0 : nz, j = 0 : ny, i = 0 : nx:
// //   out[k][j][i] = in[k][j][i];
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// column (out, in);
// return out;
