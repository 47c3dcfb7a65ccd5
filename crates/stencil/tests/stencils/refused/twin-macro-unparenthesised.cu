#define SUM in[i - 1] + in[i + 1]
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = 0.5 * SUM;
}
// expect:
// cuda::macro
//
//   × the macro `SUM` needs parentheses
//    ╭─[twin-macro-unparenthesised.cu:4:44]
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i > 0 && i < n - 1) out[i] = 0.5 * SUM;
//    ·                                            ─┬─
//    ·                                             ╰── means `in[i - 1] + in[i + 1]`
//  5 │ }
//    ╰────
//   help: put parentheses around the body of the macro
