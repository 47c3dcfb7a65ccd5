__global__ void march(double *out, const double *in, int nx, int ny, int nz, double c0, double c1) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
    int plane = nx * ny, p = j * nx + i;
    double below = in[p], here = in[p + plane];
    p += plane;
    for (int k = 1; k < nz - 1; k++) {
        double above = in[p + plane];
        out[p] = c0 * here + c1 * (below + above + in[p - 1] + in[p + 1] + in[p - nx] + in[p + nx]);
        below = here;
        here = above;
        p += plane;
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function march (out, in, c0, c1) {
//   double below = in[k-1][j][i];
//   double here = in[k][j][i];
//   double above = in[k+1][j][i];
//   out[k][j][i] = c0 * here + c1 * (below + above + in[k][j][i-1] + in[k][j][i+1] + in[k][j-1][i] + in[k][j+1][i]);
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx], c0, c1;
// march (out, in, c0, c1);
// return out;
