#define B 8
__global__ void f(double *out, const double *in, int n) {
    __shared__ double tile[B + 2];
    const int t = threadIdx.x + 1, i = blockIdx.x * B + threadIdx.x;
    if (i < n) {
        tile[t] = in[i];
        if (t == 1 && i > 0) tile[0] = in[i - 1];
        if (t == B && i < n - 1) tile[B + 1] = in[i + 1];
    }
    if (i > 0 && i < n - 1) out[i] = tile[t - 1] + tile[t + 1];
}
// expect:
// stencil::barrier
//
//   × there is no barrier between stores to `tile` and reads of it
//     ╭─[tile-missing-barrier.cu:6:9]
//   5 │     if (i < n) {
//   6 │         tile[t] = in[i];
//     ·         ────────┬───────
//     ·                 ╰── filled here
//   7 │         if (t == 1 && i > 0) tile[0] = in[i - 1];
//   8 │         if (t == B && i < n - 1) tile[B + 1] = in[i + 1];
//   9 │     }
//  10 │     if (i > 0 && i < n - 1) out[i] = tile[t - 1] + tile[t + 1];
//     ·                                      ─────┬─────
//     ·                                           ╰── other threads may not have filled it
//  11 │ }
//     ╰────
//   help: put `__syncthreads()` between them
