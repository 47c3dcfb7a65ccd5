__device__ int calls;
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) calls++;
    if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::guard
//
//   × the points are not a rectangular box
//    ╭─[twin-static-counter.cu:4:9]
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i == 0) calls++;
//    ·         ───┬──
//    ·            ╰── not a bound of one iterator
//  5 │     if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
//    ╰────
//   help: a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`
