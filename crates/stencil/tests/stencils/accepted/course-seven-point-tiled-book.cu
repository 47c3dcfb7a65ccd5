#define IN_TILE_DIM 8
#define OUT_TILE_DIM (IN_TILE_DIM - 2)
__constant__ float c0, c1, c2, c3, c4, c5, c6;
__global__ void stencil_tiled(float* in, float* out, unsigned int N) {
    int i = blockIdx.z * OUT_TILE_DIM + threadIdx.z - 1;
    int j = blockIdx.y * OUT_TILE_DIM + threadIdx.y - 1;
    int k = blockIdx.x * OUT_TILE_DIM + threadIdx.x - 1;
    __shared__ float in_s[IN_TILE_DIM][IN_TILE_DIM][IN_TILE_DIM];
    if (i >= 0 && i < N && j >= 0 && j < N && k >= 0 && k < N) {
        in_s[threadIdx.z][threadIdx.y][threadIdx.x] = in[i * N * N + j * N + k];
    }
    __syncthreads();
    if (i >= 1 && i < N - 1 && j >= 1 && j < N - 1 && k >= 1 && k < N - 1) {
        if (threadIdx.z >= 1 && threadIdx.z < IN_TILE_DIM - 1 && threadIdx.y >= 1
            && threadIdx.y < IN_TILE_DIM - 1 && threadIdx.x >= 1 && threadIdx.x < IN_TILE_DIM - 1) {
            out[i * N * N + j * N + k] = c0 * in_s[threadIdx.z][threadIdx.y][threadIdx.x]
                + c1 * in_s[threadIdx.z][threadIdx.y][threadIdx.x - 1]
                + c2 * in_s[threadIdx.z][threadIdx.y][threadIdx.x + 1]
                + c3 * in_s[threadIdx.z][threadIdx.y - 1][threadIdx.x]
                + c4 * in_s[threadIdx.z][threadIdx.y + 1][threadIdx.x]
                + c5 * in_s[threadIdx.z - 1][threadIdx.y][threadIdx.x]
                + c6 * in_s[threadIdx.z + 1][threadIdx.y][threadIdx.x];
        }
    }
}
// expect:
// i: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// k: 1 and 1 cells are not computed
// function stencil_tiled (in, out, c0_of_file, c1_of_file, c2_of_file, c3_of_file, c4_of_file, c5_of_file, c6_of_file) {
//   out[i][j][k] = c0_of_file[0] * in[i][j][k] + c1_of_file[0] * in[i][j][k-1] + c2_of_file[0] * in[i][j][k+1] + c3_of_file[0] * in[i][j-1][k] + c4_of_file[0] * in[i][j+1][k] + c5_of_file[0] * in[i-1][j][k] + c6_of_file[0] * in[i+1][j][k];
// }
// // `c0_of_file` is `c0` of the file
// // `c1_of_file` is `c1` of the file
// // `c2_of_file` is `c2` of the file
// // `c3_of_file` is `c3` of the file
// // `c4_of_file` is `c4` of the file
// // `c5_of_file` is `c5` of the file
// // `c6_of_file` is `c6` of the file
// parameter N;
// iterator i, j, k;
// float in[N][N][N], out[N][N][N], c0_of_file[1], c1_of_file[1], c2_of_file[1], c3_of_file[1], c4_of_file[1], c5_of_file[1], c6_of_file[1];
// stencil_tiled (in, out, c0_of_file, c1_of_file, c2_of_file, c3_of_file, c4_of_file, c5_of_file, c6_of_file);
// return out;
