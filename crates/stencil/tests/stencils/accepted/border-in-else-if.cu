__global__ void dirichlet(float *out, const float *in, int nx, int ny, float value) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
        out[y * nx + x] = 0.25f * (in[y * nx + x - 1] + in[y * nx + x + 1] + in[(y - 1) * nx + x] + in[(y + 1) * nx + x]);
    } else if (x < nx && y < ny) {
        out[y * nx + x] = value;
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function dirichlet (out, in, value) {
//   out[y][x] = 0.25f * (in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x]);
// }
// // other points of y = 0 : ny, x = 0 : nx:
// //   out[y][x] = value;
// parameter nx, ny;
// iterator y, x;
// float out[ny][nx], in[ny][nx], value;
// dirichlet (out, in, value);
// return out;
