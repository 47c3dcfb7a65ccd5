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
// stencil::barrier
//
//   × not all threads arrive at this barrier
//    ╭─[tile-barrier-of-some.cu:7:9]
//  6 │         tile[threadIdx.x] = in[i];
//  7 │         __syncthreads();
//    ·         ────────┬───────
//    ·                 ╰── here
//  8 │     }
//    ╰────
