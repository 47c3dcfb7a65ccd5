// What the counter is behind its loop counts.
// test: pass tiles(256x1)

__global__ void k(float *a, const float *b, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n)
    {
        int i;
        float s = 0;
        for (i = 0; i < n; i++)
            s += b[i * n + x];
        a[x] = s + i;
    }
}

// expect: pass tiles(256x1)
// k: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
