// launch: 3 6 1 4 2 1
__global__ void f(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int idx = j * nx + i;
    const int stride = nx * ny;
    double below, here, above;
    const bool inside = i > 0 && i < nx - 1 && j > 0 && j < ny - 1;
    here = in[idx];
    above = in[idx + stride];
    idx += stride;
    for (int k = 1; k < nz - 1; k++) {
        below = here;
        here = above;
        above = in[idx + stride];
        if (inside) out[idx] = below + above + 4.0 * here - in[idx - 1] * in[idx + nx];
        idx += stride;
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   double above = in[k][j][i];
//   double here = in[k-1][j][i];
//   double below = here;
//   double here_2 = above;
//   double above_2 = in[k+1][j][i];
//   out[k][j][i] = below + above_2 + 4.0 * here_2 - in[k][j][i-1] * in[k][j+1][i];
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// points j = 1 : ny-1, i = 1 : nx-1;
// f (out, in);
// return out;
