// A header that is included behind a file's macros has other words; `min` is one in front of a parenthesis.
// test: pass tiles(32x8,points=1x2,stage=8x1x2)
#define N 48
#define K 40
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define part 7
#define T float

namespace own {
__global__ void mm(const T *a, const T *b, T *c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= N || y >= N) return;
    T s = 0;
    for (int k = 0; k < K; k++) s += a[y * K + k] * b[k * N + x];
    c[y * N + x] = s;
}
}

// expect: pass tiles(32x8,points=1x2,stage=8x1x2)
// mm: block merge: a block of 256 threads computes 32 x 16 points
// mm: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// mm: coalescing: 8 turns of the loop at a time, operands in shared memory, 1 turn written out
// mm: prefetching: 1 part in flight by cp.async, no registers for it
// tiles(32x8, points=1x2, stage=8x1x2): the same in the emulator
