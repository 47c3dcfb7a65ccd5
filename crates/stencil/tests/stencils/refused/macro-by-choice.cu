#ifdef WIDE
#define R 2
#else
#define R 1
#endif
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= R && i < n) out[i] = in[i - R];
}
// expect:
// cuda::macro
//
//   × what `R` means depends on the preprocessor
//    ╭─[macro-by-choice.cu:2:1]
//  1 │ #ifdef WIDE
//  2 │ #define R 2
//    · ─────┬─────
//    ·      ╰── defined here
//  3 │ #else
//    ╰────
//    ╭─[macro-by-choice.cu:8:14]
//  7 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  8 │     if (i >= R && i < n) out[i] = in[i - R];
//    ·              ┬
//    ·              ╰── used here
//  9 │ }
//    ╰────
//   help: nvcc is needed to decide it
