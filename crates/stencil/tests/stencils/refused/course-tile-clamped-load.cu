#define T 16
__global__ void tiled(const float *in, float *out, int w, int h) {
    __shared__ float s[T + 2][T + 2];
    int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int cx = min(x, w - 1), cy = min(y, h - 1);
    s[ty][tx] = in[cy * w + cx];
    if (threadIdx.x == 0) s[ty][0] = in[cy * w + max(x - 1, 0)];
    if (threadIdx.x == T - 1) s[ty][T + 1] = in[cy * w + min(x + 1, w - 1)];
    if (threadIdx.y == 0) s[0][tx] = in[max(y - 1, 0) * w + cx];
    if (threadIdx.y == T - 1) s[T + 1][tx] = in[min(y + 1, h - 1) * w + cx];
    __syncthreads();
    if (x < w && y < h) out[y * w + x] = 0.2f * (s[ty][tx] + s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx]);
}
// expect:
// stencil::shared
//
//   × what `s` holds is not understood: two stores fill a cell with different elements
//     ╭─[course-tile-clamped-load.cu:8:27]
//   7 │     s[ty][tx] = in[cy * w + cx];
//   8 │     if (threadIdx.x == 0) s[ty][0] = in[cy * w + max(x - 1, 0)];
//     ·                           ───────────────────┬──────────────────
//     ·                                              ╰── filled here
//   9 │     if (threadIdx.x == T - 1) s[ty][T + 1] = in[cy * w + min(x + 1, w - 1)];
//  10 │     if (threadIdx.y == 0) s[0][tx] = in[max(y - 1, 0) * w + cx];
//  11 │     if (threadIdx.y == T - 1) s[T + 1][tx] = in[min(y + 1, h - 1) * w + cx];
//  12 │     __syncthreads();
//  13 │     if (x < w && y < h) out[y * w + x] = 0.2f * (s[ty][tx] + s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx]);
//     ·                                                  ────┬────
//     ·                                                      ╰── read here
//  14 │ }
//     ╰────
