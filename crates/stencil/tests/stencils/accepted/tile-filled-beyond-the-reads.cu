// launch: 2 4 1 32 4 1
#define ROWS 14
#define COLUMNS 58
__global__ void filled_beyond(double *out, const double *in) {
    __shared__ double tile[7][34];
    const int j = threadIdx.y + 4 * blockIdx.y;
    const int i = threadIdx.x + 32 * blockIdx.x;
    for (int r = threadIdx.y; r < 7; r += 4) {
        for (int s = threadIdx.x; s < 34; s += 32) {
            const int y = (int)blockIdx.y * 4 + r - 3;
            const int x = (int)blockIdx.x * 32 + s - 2;
            if (y >= 0 && y < ROWS && x >= 0 && x < COLUMNS) tile[r][s] = in[y * COLUMNS + x];
        }
    }
    __syncthreads();
    if (j >= 3 && j < ROWS - 1 && i > 1 && i < COLUMNS)
        out[j * COLUMNS + i] = tile[threadIdx.y][threadIdx.x + 2] + tile[threadIdx.y + 3][threadIdx.x];
}
// expect:
// j: 3 and 0 cells are not computed
// i: 2 and 0 cells are not computed
// function filled_beyond (out, in) {
//   out[j][i] = in[j-3][i] + in[j][i-2];
// }
// iterator j, i;
// double out[13][58], in[14][58];
// filled_beyond (out, in);
// return out;
