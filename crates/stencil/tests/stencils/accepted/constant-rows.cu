// `#pragma unroll` between loops without braces; the weights are `static`.
#define R 1
static __constant__ double K[2 * R + 1][2 * R + 1];
__global__ void rows(double *out, const double *in, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= R && r < n - R && c >= R && c < m - R) {
        double s = 0;
#pragma unroll
        for (int dr = -R; dr <= R; dr++)
            #pragma unroll
            for (int dc = -R; dc <= R; dc++)
                s += K[dr + R][dc + R] * in[(r + dr) * m + (c + dc)];
        out[r * m + c] = s;
    }
}
// expect:
// r: 1 and 1 cells are not computed
// c: 1 and 1 cells are not computed
// function rows (out, in, K_of_file) {
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
// parameter n, m;
// iterator r, c;
// double out[n][m], in[n][m], K_of_file[3][3];
// rows (out, in, K_of_file);
// return out;
