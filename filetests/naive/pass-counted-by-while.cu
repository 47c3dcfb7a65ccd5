// `while` with a counter is a loop that counts; the counter is set anew for each.
// test: pass tiles(32x8,points=1x2)

__global__ void mm(const float *a, const float *b, float *c, int m, int n, int k)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < m) {
        float sum = 0.0f;
        int i = 0;
        while (i < k) {
            sum += a[y * k + i] * b[i * n + x];
            ++i;
        }
        c[y * n + x] = sum;
    }
}

// expect: pass tiles(32x8,points=1x2)
// mm: block merge: a block of 256 threads computes 32 x 16 points
// mm: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
