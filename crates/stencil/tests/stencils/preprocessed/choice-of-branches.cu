// nvcc: -DWIDE
#include <stdio.h>
#ifdef WIDE
#define R 2
typedef double real;
#else
#define R 1
typedef float real;
#endif /* the
#if in a comment */
__global__ void f(real *out, const real *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if !defined(WIDE)
    if (i < 7) return;
#endif
#undef R
#define R 3
#ifdef __CUDA_ARCH__
    if (i == 0) return;
#else
    if (i == 1) return;
#endif
    if (i >= R && i < n) out[i] = in[i - R];
}
int main() { printf("#ifdef"); }
