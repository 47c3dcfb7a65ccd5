#define TILE 16
__global__ void marching(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz, float c0, float c1) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= nx - 1 || y >= ny - 1) return;
    float below = in[y * nx + x];
    float centre = in[nx * ny + y * nx + x];
    for (int z = 1; z < nz - 1; z++) {
        float above = in[(z + 1) * nx * ny + y * nx + x];
        out[z * nx * ny + y * nx + x] = c0 * centre + c1 * (above + below + in[z * nx * ny + y * nx + x - 1]
            + in[z * nx * ny + y * nx + x + 1] + in[z * nx * ny + (y - 1) * nx + x] + in[z * nx * ny + (y + 1) * nx + x]);
        below = centre;
        centre = above;
    }
}
// expect:
// z: 1 and 1 cells are not computed
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function marching (in, out, c0, c1) {
//   float below = in[z-1][y][x];
//   float centre = in[z][y][x];
//   float above = in[z+1][y][x];
//   out[z][y][x] = c0 * centre + c1 * (above + below + in[z][y][x-1] + in[z][y][x+1] + in[z][y-1][x] + in[z][y+1][x]);
// }
// parameter nx, ny, nz;
// iterator z, y, x;
// float in[nz][ny][nx], out[nz][ny][nx], c0, c1;
// marching (in, out, c0, c1);
// return out;
