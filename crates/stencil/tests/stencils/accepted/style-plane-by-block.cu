__global__ void plane(float *out, const float *in, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z + 1;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
    int s = nx * ny, p = k * s + j * nx + i;
    out[p] = in[p - s] + in[p + s] + in[p - nx] + in[p + nx] + in[p - 1] + in[p + 1] - 6.0f * in[p];
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function plane (out, in) {
//   out[k][j][i] = in[k-1][j][i] + in[k+1][j][i] + in[k][j-1][i] + in[k][j+1][i] + in[k][j][i-1] + in[k][j][i+1] - 6.0f * in[k][j][i];
// }
// // `blocks_z` is `gridDim.z`
// parameter nx, ny, blocks_z;
// iterator k, j, i;
// float out[blocks_z+2][ny][nx], in[blocks_z+2][ny][nx];
// plane (out, in);
// return out;
