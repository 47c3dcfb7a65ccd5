// Sizes that the file fixes are made small for the comparison.
// test: pass tiles(32x8,points=4x2)
// test: pass tiles(16x16,points=4x4,run=4x4,stage=16x4)

#define NI 512
#define NJ 512
#define NK 512
typedef float DATA_TYPE;

__global__ void gemm_kernel(DATA_TYPE *a, DATA_TYPE *b, DATA_TYPE *c)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if ((i < NI) && (j < NJ))
    {
        c[i * NJ + j] *= 2123.0f;
        int k;
        for (k = 0; k < NK; k++)
        {
            c[i * NJ + j] += 32412.0f * a[i * NK + k] * b[k * NJ + j];
        }
    }
}

// expect: pass tiles(32x8,points=4x2)
// gemm_kernel: block merge: a block of 256 threads computes 128 x 16 points
// gemm_kernel: thread merge: a thread computes 4 x 2 points, and what they share is loaded once
// tiles(32x8, points=4x2): the same in the emulator

// expect: pass tiles(16x16,points=4x4,run=4x4,stage=16x4)
// gemm_kernel: block merge: a block of 256 threads computes 64 x 64 points
// gemm_kernel: thread merge: a thread computes 4 x 4 points, and what they share is loaded once; 4 x 4 of them are neighbours
// gemm_kernel: coalescing: 16 turns of the loop at a time, operands in shared memory, 4 turns written out
// tiles(16x16, points=4x4, run=4x4, stage=16x4): the same in the emulator
