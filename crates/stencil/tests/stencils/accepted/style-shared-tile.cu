#define BX 32
#define BY 8
__global__ void tile(double *out, const double *in, int nx, int ny) {
    __shared__ double s[BY + 2][BX + 2];
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int i = blockIdx.x * BX + threadIdx.x, j = blockIdx.y * BY + threadIdx.y;
    if (i < nx && j < ny) {
        s[ty][tx] = in[j * nx + i];
        if (threadIdx.x == 0 && i > 0) s[ty][0] = in[j * nx + i - 1];
        if (threadIdx.x == BX - 1 && i < nx - 1) s[ty][BX + 1] = in[j * nx + i + 1];
        if (threadIdx.y == 0 && j > 0) s[0][tx] = in[(j - 1) * nx + i];
        if (threadIdx.y == BY - 1 && j < ny - 1) s[BY + 1][tx] = in[(j + 1) * nx + i];
    }
    __syncthreads();
    if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1)
        out[j * nx + i] = 0.25 * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function tile (out, in) {
//   out[j][i] = 0.25 * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
// }
// parameter nx, ny;
// iterator j, i;
// double out[ny][nx], in[ny][nx];
// tile (out, in);
// return out;
