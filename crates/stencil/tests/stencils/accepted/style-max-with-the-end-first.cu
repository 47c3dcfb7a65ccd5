__global__ void k(float *out, const float *in, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int left = max(0, x - 1), right = min(nx - 1, x + 1);
    int above = min(ny - 1, max(0, y - 1)), below = max(0, min(ny - 1, y + 1));
    out[y * nx + x] = in[y * nx + left] + in[y * nx + right] + in[above * nx + x] + in[below * nx + x];
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function k (out, in) {
//   out[y][x] = in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x];
// }
// // other points of y = 0 : ny, x = 0 : nx, clamped along y, clamped along x:
// //   out[y][x] = in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x];
// parameter nx, ny;
// iterator y, x;
// float out[ny][nx], in[ny][nx];
// k (out, in);
// return out;
