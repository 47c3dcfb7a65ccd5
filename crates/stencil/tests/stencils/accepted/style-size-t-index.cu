__global__ void heat3(double *out, const double *in, size_t nx, size_t ny, size_t nz, double k) {
    size_t x = blockIdx.x * blockDim.x + threadIdx.x;
    size_t y = blockIdx.y * blockDim.y + threadIdx.y;
    size_t z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x == 0 || x >= nx - 1 || y == 0 || y >= ny - 1 || z == 0 || z >= nz - 1) return;
    size_t p = (z * ny + y) * nx + x;
    out[p] = in[p] + k * (in[p - 1] + in[p + 1] + in[p - nx] + in[p + nx] + in[p - nx * ny] + in[p + nx * ny] - 6.0 * in[p]);
}
// expect:
// z: 1 and 1 cells are not computed
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function heat3 (out, in, k) {
//   out[z][y][x] = in[z][y][x] + k * (in[z][y][x-1] + in[z][y][x+1] + in[z][y-1][x] + in[z][y+1][x] + in[z-1][y][x] + in[z+1][y][x] - 6.0 * in[z][y][x]);
// }
// parameter nx, ny, nz;
// iterator z, y, x;
// double out[nz][ny][nx], in[nz][ny][nx], k;
// heat3 (out, in, k);
// return out;
