#define B 16
__global__ void two(const double *in, double *out, int n) {
    __shared__ double t[B];
    int i = blockIdx.x * (B - 2) + threadIdx.x;
    if (i < n) t[threadIdx.x] = in[i];
    __syncthreads();
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x >= 1 && threadIdx.x < B - 1 && i < n - 1 && j < n)
        out[i] = t[threadIdx.x - 1] + t[threadIdx.x + 1];
}
// expect:
// stencil::block
//
//   × 14 threads of a block compute, and blocks are 14 places apart
//    ╭─[window-beside-the-size-of-blocks.cu:8:29]
//  7 │     int j = blockIdx.x * blockDim.x + threadIdx.x;
//  8 │     if (threadIdx.x >= 1 && threadIdx.x < B - 1 && i < n - 1 && j < n)
//    ·                             ─────────┬─────────
//    ·                                      ╰── `blockDim` is used beside it
//  9 │         out[i] = t[threadIdx.x - 1] + t[threadIdx.x + 1];
//    ╰────
