__device__ inline int idx(int x, int y, int nx) { return y * nx + x; }
__global__ void smooth(const double *in, double *out, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= 1 && y >= 1 && x <= nx - 2 && y <= ny - 2)
        out[idx(x, y, nx)] = (in[idx(x - 1, y, nx)] + in[idx(x + 1, y, nx)] + in[idx(x, y - 1, nx)] + in[idx(x, y + 1, nx)] + in[idx(x, y, nx)]) / 5.0;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function smooth (in, out) {
//   out[y][x] = (in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x] + in[y][x]) / 5.0;
// }
// parameter nx, ny;
// iterator y, x;
// double in[ny][nx], out[ny][nx];
// smooth (in, out);
// return out;
