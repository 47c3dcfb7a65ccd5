// The pivot's row and column lie in front of the points.
// test: pass tiles(32x8,points=1x2)

__global__ void lu(float *a, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > k && j > k && i < n && j < n)
        a[i * n + j] = a[i * n + j] - a[i * n + k] * a[k * n + j];
}

// expect: pass tiles(32x8,points=1x2)
// lu: block merge: a block of 256 threads computes 32 x 16 points
// lu: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
