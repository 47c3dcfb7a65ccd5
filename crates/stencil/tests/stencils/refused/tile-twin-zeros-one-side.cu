#define TW 4
#define R 1
__global__ void conv(const float *in, float *out, int w, int h) {
  __shared__ float tile[TW + 2 * R][TW + 2 * R];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x = blockIdx.x * TW + tx, y = blockIdx.y * TW + ty;
  for (int j = ty; j < TW + 2 * R; j += TW)
    for (int i = tx; i < TW + R; i += TW) {
      int gx = blockIdx.x * TW + i - R, gy = blockIdx.y * TW + j - R;
      tile[j][i] = (gx >= 0 && gx < w && gy >= 0 && gy < h) ? in[gy * w + gx] : 0.0f;
    }
  __syncthreads();
  if (x < w && y < h) {
    float s = 0.0f;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i)
        s += tile[ty + j][tx + i];
    out[y * w + x] = s / 9.0f;
  }
}
// expect:
// stencil::shared
//
//   × a cell of `tile` is read that no thread fills so
//     ╭─[tile-twin-zeros-one-side.cu:17:14]
//  16 │       for (int i = 0; i < 3; ++i)
//  17 │         s += tile[ty + j][tx + i];
//     ·              ──────────┬─────────
//     ·                        ╰── read here, for instance where w = 11, h = 11
//  18 │     out[y * w + x] = s / 9.0f;
//     ╰────
//   help: the margins of the tile are filled on all sides that are read, corners included
