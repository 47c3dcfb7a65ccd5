// launch: 2 3 1 6 4 1
#define BX 6
#define BY 4
__global__ void f(double *out, const double *in, int nx, int ny, int nz) {
    __shared__ double tile[BY + 2][BX + 2];
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    const int i = blockIdx.x * BX + threadIdx.x, j = blockIdx.y * BY + threadIdx.y;
    const int plane = nx * ny;
    const bool inside = i > 0 && i < nx - 1 && j > 0 && j < ny - 1;
    int at = plane + j * nx + i;
    double below = in[at - plane], here = in[at], above = in[at + plane];
    for (int k = 1; k < nz - 1; k++) {
        __syncthreads();
        tile[ty][tx] = here;
        if (threadIdx.x == 0) tile[ty][0] = in[at - 1];
        if (threadIdx.x == BX - 1) tile[ty][BX + 1] = in[at + 1];
        if (threadIdx.y == 0) tile[0][tx] = in[at - nx];
        if (threadIdx.y == BY - 1) tile[BY + 1][tx] = in[at + nx];
        __syncthreads();
        if (inside)
            out[at] = tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1] + below + above;
        at += plane;
        below = here;
        here = above;
        above = in[at + plane];
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   double above = in[k+1][j][i];
//   double below = in[k-1][j][i];
//   out[k][j][i] = in[k][j-1][i] + in[k][j+1][i] + in[k][j][i-1] + in[k][j][i+1] + below + above;
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// f (out, in);
// return out;
