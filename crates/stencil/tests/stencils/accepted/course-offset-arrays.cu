__global__ void offsets(const float *in, float *out, int nx, int ny) {
    const int dx[4] = {-1, 1, 0, 0};
    const int dy[4] = {0, 0, -1, 1};
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
        float s = 0.0f;
        for (int d = 0; d < 4; d++) s += in[(y + dy[d]) * nx + x + dx[d]];
        out[y * nx + x] = 0.25f * s;
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function offsets (in, out) {
//   float s = 0.0f;
//   s += in[y][x-1];
//   s += in[y][x+1];
//   s += in[y-1][x];
//   s += in[y+1][x];
//   out[y][x] = 0.25f * s;
// }
// parameter nx, ny;
// iterator y, x;
// float in[ny][nx], out[ny][nx];
// offsets (in, out);
// return out;
