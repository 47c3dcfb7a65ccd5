#define LOAD(v, di, dj) do { v = in[(j + (dj)) * n + i + (di)]; } while (0)
__global__ void dwz(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    double a, b;
    LOAD(a, -1, 0);
    LOAD(b, 1, 0);
    out[j * n + i] = a - b;
}
// expect:
// cuda::macro
//
//   × the macro `LOAD` is no expression
//    ╭─[style-do-while-zero-macro.cu:1:1]
//  1 │ #define LOAD(v, di, dj) do { v = in[(j + (dj)) * n + i + (di)]; } while (0)
//    · ─────────────────────────────────────┬─────────────────────────────────────
//    ·                                      ╰── defined here
//  2 │ __global__ void dwz(double *out, const double *in, int n, int m) {
//    ╰────
//    ╭─[style-do-while-zero-macro.cu:7:5]
//  6 │     double a, b;
//  7 │     LOAD(a, -1, 0);
//    ·     ───────┬──────
//    ·            ╰── used here
//  8 │     LOAD(b, 1, 0);
//    ╰────
