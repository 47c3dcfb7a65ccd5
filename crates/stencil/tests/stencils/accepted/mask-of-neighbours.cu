// Only open neighbours count, and those that are there.
__global__ void flow(double *out, const double *in, const double *open, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int c = y * nx + x;
    double s = 0.0;
    if (x > 0 && open[c - 1] > 0.0) s += in[c - 1] - in[c];
    if (x < nx - 1 && open[c + 1] > 0.0) s += in[c + 1] - in[c];
    if (y > 0) {
        if (open[c - nx] > 0.0) s += in[c - nx] - in[c];
    }
    out[c] = in[c] + 0.1 * s;
}
// expect:
// y: 1 and 0 cells are not computed
// x: 1 and 1 cells are not computed
// function flow (out, in, open) {
//   double condition = if_less(0.0, open[y][x-1], 1.0, 0.0);
//   double s = if_equal(condition, 0.0, 0.0, 0.0 + (in[y][x-1] - in[y][x]));
//   double condition_2 = if_less(0.0, open[y][x+1], 1.0, 0.0);
//   double s_2 = if_equal(condition_2, 0.0, s, s + (in[y][x+1] - in[y][x]));
//   double condition_3 = if_less(0.0, open[y-1][x], 1.0, 0.0);
//   double s_3 = if_equal(condition_3, 0.0, s_2, s_2 + (in[y-1][x] - in[y][x]));
//   out[y][x] = in[y][x] + 0.1 * s_3;
// }
// // other points of y = 0 : ny, x = 0 : nx:
// //   double condition = (x >= 1 ? if_less(0.0, open[y][x-1], 1.0, 0.0) : 0.0);
// //   double s = (x >= 1 ? if_equal(condition, 0.0, 0.0, 0.0 + (in[y][x-1] - in[y][x])) : 0.0);
// //   double condition_2 = (x < nx-1 ? if_less(0.0, open[y][x+1], 1.0, 0.0) : 0.0);
// //   double s_2 = (x < nx-1 ? if_equal(condition_2, 0.0, s, s + (in[y][x+1] - in[y][x])) : s);
// //   double condition_3 = (y >= 1 ? if_less(0.0, open[y-1][x], 1.0, 0.0) : 0.0);
// //   double s_3 = (y >= 1 ? if_equal(condition_3, 0.0, s_2, s_2 + (in[y-1][x] - in[y][x])) : s_2);
// //   out[y][x] = in[y][x] + 0.1 * s_3;
// parameter nx, ny;
// iterator y, x;
// double out[ny][nx], in[ny][nx], open[ny][nx];
// flow (out, in, open);
// return out;
