__global__ void f(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int j = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (i >= nx - 1 || j >= ny - 1) return;
    const int plane = nx * ny;
    int idx = plane + j * nx + i;
    const double *p = in + j * nx + i;
    for (int k = 1; k < nz - 1; ++k) {
        p += plane;
        out[idx] = in[idx - 1] + in[idx + 1] - in[idx - nx] + in[idx + nx] + p[-plane] + 2.0 * *p;
        idx += plane;
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[k][j][i] = in[k][j][i-1] + in[k][j][i+1] - in[k][j-1][i] + in[k][j+1][i] + in[k-1][j][i] + 2.0 * in[k][j][i];
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// points k = 1 : nz-1;
// f (out, in);
// return out;
