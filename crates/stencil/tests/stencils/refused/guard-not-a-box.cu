__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m && i + j > 3) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::guard
//
//   × the points are not a rectangular box
//    ╭─[guard-not-a-box.cu:4:27]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m && i + j > 3) out[j * n + i] = in[j * n + i];
//    ·                           ────┬────
//    ·                               ╰── not a bound of one iterator
//  5 │ }
//    ╰────
//   help: a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`
