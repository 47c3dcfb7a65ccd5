#define SUM in[j * n + i] + in[j * n + i]
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = 2.0 * SUM;
}

// expect:
// cuda::macro
//
//   × the macro `SUM` needs parentheses
//    ╭─[macro-falls-apart.cu:5:48]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < n && j < m) out[j * n + i] = 2.0 * SUM;
//    ·                                                ─┬─
//    ·                                                 ╰── means `in[j * n + i] + in[j * n + i]`
//  6 │ }
//    ╰────
//   help: put parentheses around the body of the macro
