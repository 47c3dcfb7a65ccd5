// The smaller of two ends.
// test: pass tiles(256x1)

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < min(m, x); i++) sum += a[i * n + x];
    c[x] = sum;
}

// expect: pass tiles(256x1)
// k: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
