template <typename T>
__global__ void laplace(T* __restrict__ out, const T* __restrict__ in, int nx, int ny)
{
    const int x = blockDim.x * blockIdx.x + threadIdx.x;
    const int y = blockDim.y * blockIdx.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    const int xm = x > 0 ? x - 1 : 0, xp = x < nx - 1 ? x + 1 : nx - 1;
    const int ym = y > 0 ? y - 1 : 0, yp = y < ny - 1 ? y + 1 : ny - 1;
    out[y*nx+x] = in[y*nx+xm] + in[y*nx+xp] + in[ym*nx+x] + in[yp*nx+x] - T(4) * in[y*nx+x];
}
void run(double *a, double *b, int nx, int ny) { laplace<double><<<dim3((nx+31)/32,(ny+7)/8), dim3(32,8)>>>(a, b, nx, ny); }
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function laplace (out, in) {
//   out[y][x] = in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x] - 4.0 * in[y][x];
// }
// // other points of y = 0 : ny, x = 0 : nx, clamped along y, clamped along x:
// //   out[y][x] = in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x] - 4.0 * in[y][x];
// parameter nx, ny;
// iterator y, x;
// double out[ny][nx], in[ny][nx];
// laplace (out, in);
// return out;
