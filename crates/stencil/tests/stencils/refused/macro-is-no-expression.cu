#define PASTE(a, b) a##b[0]
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = PASTE(in, j);
}

// expect:
// cuda::macro
//
//   × the macro `PASTE` is not understood
//    ╭─[macro-is-no-expression.cu:1:1]
//  1 │ #define PASTE(a, b) a##b[0]
//    · ─────────────┬─────────────
//    ·              ╰── defined here
//  2 │ __global__ void f(double *out, const double *in, int m, int n) {
//    ╰────
//    ╭─[macro-is-no-expression.cu:5:42]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < n && j < m) out[j * n + i] = PASTE(in, j);
//    ·                                          ──────┬─────
//    ·                                                ╰── used here
//  6 │ }
//    ╰────
