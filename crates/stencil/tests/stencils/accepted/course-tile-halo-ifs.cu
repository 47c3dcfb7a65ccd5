#define BS 16
__global__ void lap_tile(const double *in, double *out, int nx, int ny) {
    __shared__ double t[BS + 2][BS + 2];
    int lx = threadIdx.x + 1, ly = threadIdx.y + 1;
    int gx = blockIdx.x * BS + threadIdx.x, gy = blockIdx.y * BS + threadIdx.y;
    if (gx < nx && gy < ny) {
        t[ly][lx] = in[gy * nx + gx];
        if (threadIdx.x == 0 && gx > 0) t[ly][0] = in[gy * nx + gx - 1];
        if (threadIdx.x == BS - 1 && gx < nx - 1) t[ly][BS + 1] = in[gy * nx + gx + 1];
        if (threadIdx.y == 0 && gy > 0) t[0][lx] = in[(gy - 1) * nx + gx];
        if (threadIdx.y == BS - 1 && gy < ny - 1) t[BS + 1][lx] = in[(gy + 1) * nx + gx];
    }
    __syncthreads();
    if (gx > 0 && gx < nx - 1 && gy > 0 && gy < ny - 1)
        out[gy * nx + gx] = t[ly][lx - 1] + t[ly][lx + 1] + t[ly - 1][lx] + t[ly + 1][lx] - 4.0 * t[ly][lx];
}
// expect:
// gy: 1 and 1 cells are not computed
// gx: 1 and 1 cells are not computed
// function lap_tile (in, out) {
//   out[gy][gx] = in[gy][gx-1] + in[gy][gx+1] + in[gy-1][gx] + in[gy+1][gx] - 4.0 * in[gy][gx];
// }
// parameter nx, ny;
// iterator gy, gx;
// double in[ny][nx], out[ny][nx];
// lap_tile (in, out);
// return out;
