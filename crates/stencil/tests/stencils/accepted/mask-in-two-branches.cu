__global__ void flow(float *out, const float *in, const float *solid, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && j > 0 && i < nx - 1 && j < ny - 1) {
        int c = j * nx + i;
        if (solid[c] > 0.5f)
            out[c] = 0.0f;
        else
            out[c] = 0.25f * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
    }
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function flow (out, in, solid) {
//   float condition = if_less(0.5f, solid[j][i], 1.0f, 0.0f);
//   out[j][i] = when(condition, 0.0f);
//   float stored = 0.25f * (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]);
//   float stored_2 = if_equal(condition, 0.0f, stored, 0.0f);
//   out[j][i] = stored_2;
// }
// parameter nx, ny;
// iterator j, i;
// float out[ny][nx], in[ny][nx], solid[ny][nx];
// flow (out, in, solid);
// return out;
