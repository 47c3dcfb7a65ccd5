// test: pass tiles(32x8,points=1x4)

#include <cuda_fp16.h>

__global__ void product(const half *a, const half *b, half *c, int m, int n, int k) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += __half2float(a[row * k + i]) * __half2float(b[i * n + column]);
    c[row * n + column] = __float2half(sum);
}

// expect: pass tiles(32x8,points=1x4)
// product: block merge: a block of 256 threads computes 32 x 32 points
// product: thread merge: a thread computes 1 x 4 points, and what they share is loaded once
// tiles(32x8, points=1x4): the same in the emulator
