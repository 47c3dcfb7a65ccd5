__global__ void laplace(double *out, const double *in, int ny, int nx) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx && y < ny) {
        double s = -4.0 * in[y * nx + x];
        if (x > 0) s += in[y * nx + x - 1];
        if (x < nx - 1) s += in[y * nx + x + 1];
        if (y > 0) s += in[(y - 1) * nx + x];
        if (y < ny - 1) s += in[(y + 1) * nx + x];
        out[y * nx + x] = s;
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function laplace (out, in) {
//   double s = -4.0 * in[y][x];
//   s += in[y][x-1];
//   s += in[y][x+1];
//   s += in[y-1][x];
//   s += in[y+1][x];
//   out[y][x] = s;
// }
// // other points of y = 0 : ny, x = 0 : nx:
// //   double s = -4.0 * in[y][x];
// //   double s_2 = (x >= 1 ? s + in[y][x-1] : s);
// //   double s_3 = (x < nx-1 ? s_2 + in[y][x+1] : s_2);
// //   double s_4 = (y >= 1 ? s_3 + in[y-1][x] : s_3);
// //   double s_5 = (y < ny-1 ? s_4 + in[y+1][x] : s_4);
// //   out[y][x] = s_5;
// parameter ny, nx;
// iterator y, x;
// double out[ny][nx], in[ny][nx];
// laplace (out, in);
// return out;
