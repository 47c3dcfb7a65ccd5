__global__ void upd(float *out, const float *in, const float *m, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= nx - 1 || j >= ny - 1) return;
    int c = j * nx + i;
    float lap = in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx] - 4.0f * in[c];
    out[c] = m[c] != 0.0f ? in[c] + 0.1f * lap : in[c];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function upd (out, in, m) {
//   float lap = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i] - 4.0f * in[j][i];
//   out[j][i] = if_equal(m[j][i], 0.0f, in[j][i], in[j][i] + 0.1f * lap);
// }
// parameter nx, ny;
// iterator j, i;
// float out[ny][nx], in[ny][nx], m[ny][nx];
// upd (out, in, m);
// return out;
