// The second turn reads where the inner loop of the first one ended.
// test: pass tiles(256x1)

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    int i = 0;
    for (int j = 0; j < n; j++) {
        sum += a[i];
        for (i = 0; i < j; i++) sum += a[i];
    }
    c[x] = sum + i;
}

// expect: pass tiles(256x1)
// k: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
