__global__ void biharmonic(const double *w, double *out, int nx, int ny, double h4) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int j = threadIdx.y + blockIdx.y * blockDim.y;
    int id = j * nx + i;
    if (i > 1 && j > 1 && i < nx - 2 && j < ny - 2) {
        double v = 20. * w[id] - 8. * (w[id + 1] + w[id - 1] + w[id + nx] + w[id - nx]);
        v += 2. * (w[id + nx + 1] + w[id + nx - 1] + w[id - nx + 1] + w[id - nx - 1]);
        v += w[id + 2] + w[id - 2] + w[id + 2 * nx] + w[id - 2 * nx];
        out[id] = v / h4;
    }
}
// expect:
// j: 2 and 2 cells are not computed
// i: 2 and 2 cells are not computed
// function biharmonic (w, out, h4) {
//   double v = 20.0 * w[j][i] - 8.0 * (w[j][i+1] + w[j][i-1] + w[j+1][i] + w[j-1][i]);
//   v += 2.0 * (w[j+1][i+1] + w[j+1][i-1] + w[j-1][i+1] + w[j-1][i-1]);
//   v += w[j][i+2] + w[j][i-2] + w[j+2][i] + w[j-2][i];
//   out[j][i] = v / h4;
// }
// parameter nx, ny;
// iterator j, i;
// double w[ny][nx], out[ny][nx], h4;
// biharmonic (w, out, h4);
// return out;
