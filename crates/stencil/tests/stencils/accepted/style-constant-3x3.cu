#define R 1
__constant__ double K[2 * R + 1][2 * R + 1];
__global__ void conv3(double *out, const double *in, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= R && r < rows - R && c >= R && c < cols - R) {
        double s = 0;
        #pragma unroll
        for (int dr = -R; dr <= R; dr++)
            #pragma unroll
            for (int dc = -R; dc <= R; dc++)
                s += K[dr + R][dc + R] * in[(r + dr) * cols + (c + dc)];
        out[r * cols + c] = s;
    }
}
// expect:
// r: 1 and 1 cells are not computed
// c: 1 and 1 cells are not computed
// function conv3 (out, in, K_of_file) {
//   double s = 0.0;
//   s += K_of_file[0][0] * in[r-1][c-1];
//   s += K_of_file[0][1] * in[r-1][c];
//   s += K_of_file[0][2] * in[r-1][c+1];
//   s += K_of_file[1][0] * in[r][c-1];
//   s += K_of_file[1][1] * in[r][c];
//   s += K_of_file[1][2] * in[r][c+1];
//   s += K_of_file[2][0] * in[r+1][c-1];
//   s += K_of_file[2][1] * in[r+1][c];
//   s += K_of_file[2][2] * in[r+1][c+1];
//   out[r][c] = s;
// }
// // `K_of_file` is `K` of the file
// parameter rows, cols;
// iterator r, c;
// double out[rows][cols], in[rows][cols], K_of_file[3][3];
// conv3 (out, in, K_of_file);
// return out;
