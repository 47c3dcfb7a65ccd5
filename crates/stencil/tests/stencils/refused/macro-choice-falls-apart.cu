#define BIG(a, b) a > b ? a : b
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + BIG(i, 0) + 1];
}

// expect:
// cuda::macro
//
//   × the macro `BIG(i, 0)` needs parentheses
//    ╭─[macro-choice-falls-apart.cu:5:53]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < n && j < m) out[j * n + i] = in[j * n + BIG(i, 0) + 1];
//    ·                                                     ────┬────
//    ·                                                         ╰── means `i > 0 ? i : 0`
//  6 │ }
//    ╰────
//   help: put parentheses around the body of the macro
