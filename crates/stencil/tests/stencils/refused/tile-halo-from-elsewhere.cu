#define B 8
__global__ void f(double *out, const double *in, int n) {
    __shared__ double tile[B + 2];
    const int t = threadIdx.x + 1, i = blockIdx.x * B + threadIdx.x;
    if (i < n) {
        tile[t] = in[i];
        if (t == 1 && i > 1) tile[0] = in[i - 2];
        if (t == B && i < n - 1) tile[B + 1] = in[i + 1];
    }
    __syncthreads();
    if (i > 1 && i < n - 1) out[i] = tile[t - 1] + tile[t + 1];
}
// expect:
// stencil::shared
//
//   × what `tile` holds is not understood: two stores fill a cell with different elements
//     ╭─[tile-halo-from-elsewhere.cu:7:30]
//   6 │         tile[t] = in[i];
//   7 │         if (t == 1 && i > 1) tile[0] = in[i - 2];
//     ·                              ──────────┬─────────
//     ·                                        ╰── filled here
//   8 │         if (t == B && i < n - 1) tile[B + 1] = in[i + 1];
//   9 │     }
//  10 │     __syncthreads();
//  11 │     if (i > 1 && i < n - 1) out[i] = tile[t - 1] + tile[t + 1];
//     ·                                      ─────┬─────
//     ·                                           ╰── read here
//  12 │ }
//     ╰────
