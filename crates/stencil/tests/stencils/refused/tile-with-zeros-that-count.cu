#define B 8
__global__ void f(double *out, const double *in, int n) {
    __shared__ double tile[B + 2];
    const int t = threadIdx.x + 1, i = blockIdx.x * B + threadIdx.x;
    tile[t] = i < n ? in[i] : 0.0;
    if (t == 1) tile[0] = i > 0 ? in[i - 1] : 0.0;
    if (t == B) tile[B + 1] = i + 1 < n ? in[i + 1] : 0.0;
    __syncthreads();
    if (i < n) out[i] = tile[t - 1] + tile[t + 1];
}
// expect:
// stencil::shared
//
//   × a cell of `tile` is read that no thread fills so
//     ╭─[tile-with-zeros-that-count.cu:9:25]
//   8 │     __syncthreads();
//   9 │     if (i < n) out[i] = tile[t - 1] + tile[t + 1];
//     ·                         ─────┬─────
//     ·                              ╰── read here, for instance where n = 19
//  10 │ }
//     ╰────
//   help: the margins of the tile are filled on all sides that are read, corners included
