#define IN(j, i) in[(j) * n + (i)]
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = IN(j);
}

// expect:
// cuda::macro
//
//   × the macro `IN` takes 2 arguments, not 1
//    ╭─[macro-argument-count.cu:1:1]
//  1 │ #define IN(j, i) in[(j) * n + (i)]
//    · ─────────────────┬────────────────
//    ·                  ╰── defined here
//  2 │ __global__ void f(double *out, const double *in, int m, int n) {
//    ╰────
//    ╭─[macro-argument-count.cu:5:42]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < n && j < m) out[j * n + i] = IN(j);
//    ·                                          ──┬──
//    ·                                            ╰── used here
//  6 │ }
//    ╰────
