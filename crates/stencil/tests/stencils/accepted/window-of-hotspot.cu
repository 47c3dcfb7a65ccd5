#define BLOCK_SIZE 16
__global__ void hotspot_step(const double *power, const double *temp_src, double *temp_dst, int cols, int rows, double cap, double Rx, double Ry, double Rz, double step) {
    __shared__ double t[BLOCK_SIZE][BLOCK_SIZE];
    int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int small = BLOCK_SIZE - 2;
    int y = small * by - 1 + ty;
    int x = small * bx - 1 + tx;
    int index = cols * y + x;
    if (y >= 0 && y <= rows - 1 && x >= 0 && x <= cols - 1) t[ty][tx] = temp_src[index];
    __syncthreads();
    if (tx >= 1 && tx <= BLOCK_SIZE - 2 && ty >= 1 && ty <= BLOCK_SIZE - 2 && y >= 1 && y < rows - 1 && x >= 1 && x < cols - 1)
        temp_dst[index] = t[ty][tx] + step / cap * (power[index] + (t[ty + 1][tx] + t[ty - 1][tx] - 2.0 * t[ty][tx]) / Ry +
            (t[ty][tx + 1] + t[ty][tx - 1] - 2.0 * t[ty][tx]) / Rx + (80.0 - t[ty][tx]) / Rz);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function hotspot_step (power, temp_src, temp_dst, cap, Rx, Ry, Rz, step) {
//   temp_dst[y][x] = temp_src[y][x] + step / cap * (power[y][x] + (temp_src[y+1][x] + temp_src[y-1][x] - 2.0 * temp_src[y][x]) / Ry + (temp_src[y][x+1] + temp_src[y][x-1] - 2.0 * temp_src[y][x]) / Rx + (80.0 - temp_src[y][x]) / Rz);
// }
// parameter cols, rows;
// iterator y, x;
// double power[rows][cols], temp_src[rows][cols], temp_dst[rows][cols], cap, Rx, Ry, Rz, step;
// hotspot_step (power, temp_src, temp_dst, cap, Rx, Ry, Rz, step);
// return temp_dst;
