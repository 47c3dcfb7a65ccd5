#include <cstdio>
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        out[i] = in[i - 1] + in[i + 1];
        if (out[i] > 100.0) printf("%d\n", i);
    }
}
// expect:
// cuda::subset
//
//   × this is outside the subset of CUDA C that is understood: string literal
//    ╭─[twin-printf-inside.cu:6:36]
//  5 │         out[i] = in[i - 1] + in[i + 1];
//  6 │         if (out[i] > 100.0) printf("%d\n", i);
//    ·                                    ───┬──
//    ·                                       ╰── not understood
//  7 │     }
//    ╰────
