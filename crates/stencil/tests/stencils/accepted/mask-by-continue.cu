__global__ void lap(float *out, const float *in, const float *flag, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= nx - 1 || j >= ny - 1) return;
    for (int k = 1; k < nz - 1; k++) {
        int c = (k * ny + j) * nx + i;
        if (!flag[c]) continue;
        out[c] = in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx] + in[c - nx * ny] + in[c + nx * ny] - 6.0f * in[c];
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lap (out, in, flag) {
//   float condition = if_equal(flag[k][j][i], 0.0f, 1.0f, 0.0f);
//   float stored = in[k][j][i-1] + in[k][j][i+1] + in[k][j-1][i] + in[k][j+1][i] + in[k-1][j][i] + in[k+1][j][i] - 6.0f * in[k][j][i];
//   out[k][j][i] = when(if_equal(condition, 0.0f, 1.0f, 0.0f), stored);
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// float out[nz][ny][nx], in[nz][ny][nx], flag[nz][ny][nx];
// lap (out, in, flag);
// return out;
