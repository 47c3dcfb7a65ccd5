__global__ void k(double *out, const double *in, int n) {
    __shared__ double s[258];
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) s[threadIdx.x + 1] = in[i];
    if (threadIdx.x == 0 && i > 0) s[0] = in[i - 1];
    if (threadIdx.x == 255 && i + 1 < n) s[257] = in[i + 1];
    if (i > 0 && i < n - 1) out[i] = s[threadIdx.x] + s[threadIdx.x + 2];
}
// expect:
// stencil::barrier
//
//   × there is no barrier between stores to `s` and reads of it
//    ╭─[twin-race-tile-no-barrier.cu:4:16]
//  3 │     int i = blockIdx.x * 256 + threadIdx.x;
//  4 │     if (i < n) s[threadIdx.x + 1] = in[i];
//    ·                ─────────────┬─────────────
//    ·                             ╰── filled here
//  5 │     if (threadIdx.x == 0 && i > 0) s[0] = in[i - 1];
//  6 │     if (threadIdx.x == 255 && i + 1 < n) s[257] = in[i + 1];
//  7 │     if (i > 0 && i < n - 1) out[i] = s[threadIdx.x] + s[threadIdx.x + 2];
//    ·                                      ───────┬──────
//    ·                                             ╰── other threads may not have filled it
//  8 │ }
//    ╰────
//   help: put `__syncthreads()` between them
