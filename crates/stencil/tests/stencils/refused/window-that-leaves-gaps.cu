#define B 16
__global__ void gaps(const double *in, double *out, int n) {
    __shared__ double t[B];
    int i = blockIdx.x * (B - 2) + threadIdx.x;
    if (i < n) t[threadIdx.x] = in[i];
    __syncthreads();
    if (threadIdx.x >= 1 && threadIdx.x < B - 2 && i < n - 1)
        out[i] = t[threadIdx.x - 1] + t[threadIdx.x + 1];
}
// expect:
// stencil::block
//
//   × 13 threads of a block compute, and blocks are 14 places apart
//    ╭─[window-that-leaves-gaps.cu:7:29]
//  6 │     __syncthreads();
//  7 │     if (threadIdx.x >= 1 && threadIdx.x < B - 2 && i < n - 1)
//    ·                             ─────────┬─────────
//    ·                                      ╰── these threads
//  8 │         out[i] = t[threadIdx.x - 1] + t[threadIdx.x + 1];
//    ╰────
