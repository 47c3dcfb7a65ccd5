#define B 8
__global__ void f(double *out, const double *in, int m, int n) {
    __shared__ double tile[B + 2][B + 2];
    const int x = threadIdx.x + 1, y = threadIdx.y + 1;
    const int i = blockIdx.x * B + threadIdx.x, j = blockIdx.y * B + threadIdx.y;
    if (i < n && j < m) {
        tile[y][x] = in[j * n + i];
        if (x == 1 && i > 0) tile[y][0] = in[j * n + i - 1];
        if (x == B && i < n - 1) tile[y][B + 1] = in[j * n + i + 1];
        if (y == 1 && j > 0) tile[0][x] = in[(j - 1) * n + i];
        if (y == B && j < m - 1) tile[B + 1][x] = in[(j + 1) * n + i];
    }
    __syncthreads();
    if (i > 0 && i < n - 1 && j > 0 && j < m - 1) out[j * n + i] = tile[y - 1][x - 1] + tile[y + 1][x + 1];
}
// expect:
// stencil::shared
//
//   × a cell of `tile` is read that no thread fills so
//     ╭─[tile-without-corners.cu:14:89]
//  13 │     __syncthreads();
//  14 │     if (i > 0 && i < n - 1 && j > 0 && j < m - 1) out[j * n + i] = tile[y - 1][x - 1] + tile[y + 1][x + 1];
//     ·                                                                                         ─────────┬────────
//     ·                                                                                                  ╰── read here, for instance where m = 19, n = 19
//  15 │ }
//     ╰────
//   help: the margins of the tile are filled on all sides that are read, corners included
