__global__ void ocean(float *out, const float *in, const float *wet, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int c = j * nx + i;
    if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1 && wet[c] > 0.5f)
        out[c] = 0.25f * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function ocean (out, in, wet) {
//   float condition = if_less(0.5f, wet[j][i], 1.0f, 0.0f);
//   float stored = 0.25f * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
//   out[j][i] = when(condition, stored);
// }
// parameter nx, ny;
// iterator j, i;
// float out[ny][nx], in[ny][nx], wet[ny][nx];
// ocean (out, in, wet);
// return out;
