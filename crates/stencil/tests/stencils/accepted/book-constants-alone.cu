__constant__ float c0, c1, c2, c3, c4, c5, c6;
__global__ void stencil_kernel(float* in, float* out, unsigned int N) {
    unsigned int i = blockIdx.z * blockDim.z + threadIdx.z;
    unsigned int j = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 1 && i < N - 1 && j >= 1 && j < N - 1 && k >= 1 && k < N - 1) {
        out[i * N * N + j * N + k] = c0 * in[i * N * N + j * N + k]
                                   + c1 * in[i * N * N + j * N + (k - 1)]
                                   + c2 * in[i * N * N + j * N + (k + 1)]
                                   + c3 * in[i * N * N + (j - 1) * N + k]
                                   + c4 * in[i * N * N + (j + 1) * N + k]
                                   + c5 * in[(i - 1) * N * N + j * N + k]
                                   + c6 * in[(i + 1) * N * N + j * N + k];
    }
}
// expect:
// i: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// k: 1 and 1 cells are not computed
// function stencil_kernel (in, out, c0_of_file, c1_of_file, c2_of_file, c3_of_file, c4_of_file, c5_of_file, c6_of_file) {
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
// stencil_kernel (in, out, c0_of_file, c1_of_file, c2_of_file, c3_of_file, c4_of_file, c5_of_file, c6_of_file);
// return out;
