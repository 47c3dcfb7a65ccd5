#define B 8
__global__ void f(double *out, const double *in, int n) {
    __shared__ double tile[B];
    const int i = blockIdx.x * B + threadIdx.x;
    if (threadIdx.x < 4) {
        tile[threadIdx.x] = in[i];
        __syncthreads();
    }
    if (i < n) out[i] = tile[threadIdx.x];
}
// expect:
// stencil::guard
//
//   × the condition is not on the place of the point
//    ╭─[tile-barrier-of-some.cu:5:9]
//  4 │     const int i = blockIdx.x * B + threadIdx.x;
//  5 │     if (threadIdx.x < 4) {
//    ·         ───────┬───────
//    ·                ╰── depends on the place of the thread in its block
//  6 │         tile[threadIdx.x] = in[i];
//    ╰────
//   help: compare `blockIdx.x * blockDim.x + threadIdx.x` and so on with the sizes
