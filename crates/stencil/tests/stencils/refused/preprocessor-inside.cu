__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
#ifdef HALF
    out[j * n + i] = 0.5 * in[j * n + i];
#else
    out[j * n + i] = in[j * n + i];
#endif
}

// expect:
// cuda::subset
//
//   × a kernel with `#if` is several kernels; only one can be understood
//    ╭─[preprocessor-inside.cu:5:1]
//  4 │     if (i >= n || j >= m) return;
//  5 │ #ifdef HALF
//    · ─────┬─────
//    ·      ╰── depends on the preprocessor
//  6 │     out[j * n + i] = 0.5 * in[j * n + i];
//    ╰────
//   help: run the preprocessor first, or move the choice out of the kernel
