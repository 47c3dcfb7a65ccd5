#define B 8
__global__ void f(double *out, const double *in, int m, int n) {
    __shared__ double row[B + 2];
    const int t = threadIdx.x + 1, i = blockIdx.x * B + threadIdx.x;
    for (int j = 0; j < m; j++) {
        if (i < n) {
            row[t] = in[j * n + i];
            if (t == 1 && i > 0) row[0] = in[j * n + i - 1];
            if (t == B && i < n - 1) row[B + 1] = in[j * n + i + 1];
        }
        __syncthreads();
        if (i > 0 && i < n - 1) out[j * n + i] = row[t - 1] + row[t + 1];
    }
}
// expect:
// stencil::barrier
//
//   × there is no barrier between stores to `row` and reads of it
//    ╭─[tile-filled-again-too-early.cu:5:5]
//  4 │     const int t = threadIdx.x + 1, i = blockIdx.x * B + threadIdx.x;
//  5 │     for (int j = 0; j < m; j++) {
//    ·     ──────────────┬─────────────
//    ·                   ╰── in this loop
//  6 │         if (i < n) {
//  7 │             row[t] = in[j * n + i];
//    ·             ───────────┬───────────
//    ·                        ╰── the iteration before may still read it
//  8 │             if (t == 1 && i > 0) row[0] = in[j * n + i - 1];
//    ╰────
//   help: put `__syncthreads()` between them
