__global__ void ocean(double *out, const double *in, const double *mask, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= nx - 1 || j >= ny - 1) return;
    int c = j * nx + i;
    if (mask[c] == 0) return;
    out[c] = 0.25 * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function ocean (out, in, mask) {
//   double condition = if_equal(mask[j][i], 0.0, 1.0, 0.0);
//   double stored = 0.25 * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
//   out[j][i] = when(if_equal(condition, 0.0, 1.0, 0.0), stored);
// }
// parameter nx, ny;
// iterator j, i;
// double out[ny][nx], in[ny][nx], mask[ny][nx];
// ocean (out, in, mask);
// return out;
