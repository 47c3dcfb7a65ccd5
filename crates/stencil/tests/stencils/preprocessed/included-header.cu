// nvcc: -Itests/stencils/preprocessed/include -DPITCH=24
#include "include/weights.h"
#include <cuda_runtime.h>
#ifndef STEP
#define STEP 2
#endif
#if PITCH > 100
#error too long
#elif defined(SINGLE)
#define EAST(a, i) (a)[i]
#else
#define EAST(a, i) ((a)[(i) + STEP])
#endif

__global__ void f(real *out, const real *in, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= PITCH - STEP || j >= m) return;
    const int at = j * PITCH + i;
#ifdef SINGLE
    out[at] = 0;
#else
    out[at] = mixed(WEST(in, at), EAST(in, at)) * table[0] + table[1] * in[at] * M_PI;
#endif
}
