__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * (blockDim.x - 2) + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] += in[i - 1] + in[i + 1];
}
// expect:
// stencil::guard
//
//   × the points are not a rectangular box
//    ╭─[twin-overlapping-threads.cu:3:9]
//  2 │     int i = blockIdx.x * (blockDim.x - 2) + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) out[i] += in[i - 1] + in[i + 1];
//    ·         ──┬──
//    ·           ╰── not a bound of one iterator
//  4 │ }
//    ╰────
//   help: a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`
