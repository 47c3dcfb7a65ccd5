__global__ void obstacle(const float *in, float *out, const int *mask, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1) {
        int c = y * nx + x;
        if (mask[c]) out[c] = 0.25f * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
        else out[c] = in[c];
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function obstacle (in, out, mask) {
//   int condition = if_equal(mask[y][x], 0, 0, 1);
//   float stored = 0.25f * (in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x]);
//   out[y][x] = when(condition, stored);
//   float stored_2 = in[y][x];
//   float stored_3 = if_equal(condition, 0, stored_2, stored);
//   out[y][x] = stored_3;
// }
// parameter nx, ny;
// iterator y, x;
// float in[ny][nx], out[ny][nx];
// int mask[ny][nx];
// obstacle (in, out, mask);
// return out;
