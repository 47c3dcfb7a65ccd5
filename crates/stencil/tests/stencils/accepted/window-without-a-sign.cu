#define IN_TILE_DIM 8
#define OUT_TILE_DIM (IN_TILE_DIM - 2)
#define c0 0.5
#define c1 0.1
__global__ void stencil_kernel(double *in, double *out, unsigned int N) {
    int i = blockIdx.z * OUT_TILE_DIM + threadIdx.z - 1;
    int j = blockIdx.y * OUT_TILE_DIM + threadIdx.y - 1;
    int k = blockIdx.x * OUT_TILE_DIM + threadIdx.x - 1;
    __shared__ double in_s[IN_TILE_DIM][IN_TILE_DIM][IN_TILE_DIM];
    if (i >= 0 && i < N && j >= 0 && j < N && k >= 0 && k < N) {
        in_s[threadIdx.z][threadIdx.y][threadIdx.x] = in[i * N * N + j * N + k];
    }
    __syncthreads();
    if (i >= 1 && i < N - 1 && j >= 1 && j < N - 1 && k >= 1 && k < N - 1) {
        if (threadIdx.z >= 1 && threadIdx.z < IN_TILE_DIM - 1 && threadIdx.y >= 1 &&
            threadIdx.y < IN_TILE_DIM - 1 && threadIdx.x >= 1 && threadIdx.x < IN_TILE_DIM - 1) {
            out[i * N * N + j * N + k] = c0 * in_s[threadIdx.z][threadIdx.y][threadIdx.x] +
                c1 * (in_s[threadIdx.z][threadIdx.y][threadIdx.x - 1] + in_s[threadIdx.z][threadIdx.y][threadIdx.x + 1] +
                      in_s[threadIdx.z][threadIdx.y - 1][threadIdx.x] + in_s[threadIdx.z][threadIdx.y + 1][threadIdx.x] +
                      in_s[threadIdx.z - 1][threadIdx.y][threadIdx.x] + in_s[threadIdx.z + 1][threadIdx.y][threadIdx.x]);
        }
    }
}
// expect:
// i: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// k: 1 and 1 cells are not computed
// function stencil_kernel (in, out) {
//   out[i][j][k] = 0.5 * in[i][j][k] + 0.1 * (in[i][j][k-1] + in[i][j][k+1] + in[i][j-1][k] + in[i][j+1][k] + in[i-1][j][k] + in[i+1][j][k]);
// }
// parameter N;
// iterator i, j, k;
// double in[N][N][N], out[N][N][N];
// stencil_kernel (in, out);
// return out;
