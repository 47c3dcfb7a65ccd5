// 81 points, anchored at the low corner, with weights that are no product of two rows.
#define PITCH 40
__global__ void corner81(const double* __restrict__ in, double* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i <= n - 9 && j <= n - 9) {
        out[j * PITCH + i] = (in[(j + 0) * PITCH + i + 0] + in[(j + 0) * PITCH + i + 8] + in[(j + 8) * PITCH + i + 0] + in[(j + 8) * PITCH + i + 8]) * -2.09628 +
            (in[(j + 0) * PITCH + i + 1] + in[(j + 0) * PITCH + i + 7] + in[(j + 1) * PITCH + i + 0] + in[(j + 1) * PITCH + i + 8] + in[(j + 7) * PITCH + i + 0] + in[(j + 7) * PITCH + i + 8] + in[(j + 8) * PITCH + i + 1] + in[(j + 8) * PITCH + i + 7]) * 0.35383 +
            (in[(j + 0) * PITCH + i + 2] + in[(j + 0) * PITCH + i + 6] + in[(j + 2) * PITCH + i + 0] + in[(j + 2) * PITCH + i + 8] + in[(j + 6) * PITCH + i + 0] + in[(j + 6) * PITCH + i + 8] + in[(j + 8) * PITCH + i + 2] + in[(j + 8) * PITCH + i + 6]) * -1.04036 +
            (in[(j + 0) * PITCH + i + 3] + in[(j + 0) * PITCH + i + 5] + in[(j + 3) * PITCH + i + 0] + in[(j + 3) * PITCH + i + 8] + in[(j + 5) * PITCH + i + 0] + in[(j + 5) * PITCH + i + 8] + in[(j + 8) * PITCH + i + 3] + in[(j + 8) * PITCH + i + 5]) * 0.83136 +
            (in[(j + 0) * PITCH + i + 4] + in[(j + 4) * PITCH + i + 0] + in[(j + 4) * PITCH + i + 8] + in[(j + 8) * PITCH + i + 4]) * 1.00576 +
            (in[(j + 1) * PITCH + i + 1] + in[(j + 1) * PITCH + i + 7] + in[(j + 7) * PITCH + i + 1] + in[(j + 7) * PITCH + i + 7]) * 3.96516 +
            (in[(j + 1) * PITCH + i + 2] + in[(j + 1) * PITCH + i + 6] + in[(j + 2) * PITCH + i + 1] + in[(j + 2) * PITCH + i + 7] + in[(j + 6) * PITCH + i + 1] + in[(j + 6) * PITCH + i + 7] + in[(j + 7) * PITCH + i + 2] + in[(j + 7) * PITCH + i + 6]) * -0.23789 +
            (in[(j + 1) * PITCH + i + 3] + in[(j + 1) * PITCH + i + 5] + in[(j + 3) * PITCH + i + 1] + in[(j + 3) * PITCH + i + 7] + in[(j + 5) * PITCH + i + 1] + in[(j + 5) * PITCH + i + 7] + in[(j + 7) * PITCH + i + 3] + in[(j + 7) * PITCH + i + 5]) * 2.69169 +
            (in[(j + 1) * PITCH + i + 4] + in[(j + 4) * PITCH + i + 1] + in[(j + 4) * PITCH + i + 7] + in[(j + 7) * PITCH + i + 4]) * -0.18917 +
            (in[(j + 2) * PITCH + i + 2] + in[(j + 2) * PITCH + i + 6] + in[(j + 6) * PITCH + i + 2] + in[(j + 6) * PITCH + i + 6]) * 1.37129 +
            (in[(j + 2) * PITCH + i + 3] + in[(j + 2) * PITCH + i + 5] + in[(j + 3) * PITCH + i + 2] + in[(j + 3) * PITCH + i + 6] + in[(j + 5) * PITCH + i + 2] + in[(j + 5) * PITCH + i + 6] + in[(j + 6) * PITCH + i + 3] + in[(j + 6) * PITCH + i + 5]) * -3.48775 +
            (in[(j + 2) * PITCH + i + 4] + in[(j + 4) * PITCH + i + 2] + in[(j + 4) * PITCH + i + 6] + in[(j + 6) * PITCH + i + 4]) * 2.06584 +
            (in[(j + 3) * PITCH + i + 3] + in[(j + 3) * PITCH + i + 5] + in[(j + 5) * PITCH + i + 3] + in[(j + 5) * PITCH + i + 5]) * 1.71304 +
            (in[(j + 3) * PITCH + i + 4] + in[(j + 4) * PITCH + i + 3] + in[(j + 4) * PITCH + i + 5] + in[(j + 5) * PITCH + i + 4]) * 3.36879 +
            (in[(j + 4) * PITCH + i + 4]) * 3.72384;
    }
}
// expect:
// j: 0 and 8 cells are not computed
// i: 0 and 8 cells are not computed
// function corner81 (in, out) {
//   out[j][i] = (in[j][i] + in[j][i+8] + in[j+8][i] + in[j+8][i+8]) * -2.09628 + (in[j][i+1] + in[j][i+7] + in[j+1][i] + in[j+1][i+8] + in[j+7][i] + in[j+7][i+8] + in[j+8][i+1] + in[j+8][i+7]) * 0.35383 + (in[j][i+2] + in[j][i+6] + in[j+2][i] + in[j+2][i+8] + in[j+6][i] + in[j+6][i+8] + in[j+8][i+2] + in[j+8][i+6]) * -1.04036 + (in[j][i+3] + in[j][i+5] + in[j+3][i] + in[j+3][i+8] + in[j+5][i] + in[j+5][i+8] + in[j+8][i+3] + in[j+8][i+5]) * 0.83136 + (in[j][i+4] + in[j+4][i] + in[j+4][i+8] + in[j+8][i+4]) * 1.00576 + (in[j+1][i+1] + in[j+1][i+7] + in[j+7][i+1] + in[j+7][i+7]) * 3.96516 + (in[j+1][i+2] + in[j+1][i+6] + in[j+2][i+1] + in[j+2][i+7] + in[j+6][i+1] + in[j+6][i+7] + in[j+7][i+2] + in[j+7][i+6]) * -0.23789 + (in[j+1][i+3] + in[j+1][i+5] + in[j+3][i+1] + in[j+3][i+7] + in[j+5][i+1] + in[j+5][i+7] + in[j+7][i+3] + in[j+7][i+5]) * 2.69169 + (in[j+1][i+4] + in[j+4][i+1] + in[j+4][i+7] + in[j+7][i+4]) * -0.18917 + (in[j+2][i+2] + in[j+2][i+6] + in[j+6][i+2] + in[j+6][i+6]) * 1.37129 + (in[j+2][i+3] + in[j+2][i+5] + in[j+3][i+2] + in[j+3][i+6] + in[j+5][i+2] + in[j+5][i+6] + in[j+6][i+3] + in[j+6][i+5]) * -3.48775 + (in[j+2][i+4] + in[j+4][i+2] + in[j+4][i+6] + in[j+6][i+4]) * 2.06584 + (in[j+3][i+3] + in[j+3][i+5] + in[j+5][i+3] + in[j+5][i+5]) * 1.71304 + (in[j+3][i+4] + in[j+4][i+3] + in[j+4][i+5] + in[j+5][i+4]) * 3.36879 + in[j+4][i+4] * 3.72384;
// }
// parameter n;
// iterator j, i;
// double in[n][40], out[n][40];
// points i = 0 : n-8;
// corner81 (in, out);
// return out;
