// Points begin behind what is no end of anything (PolyBench/GPU has such a step of an orthogonalization).
// test: pass tiles(32x1)

__global__ void step(const float *q, float *a, int n, int m, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j > k && j < n) {
        float r = 0.0f;
        for (int i = 0; i < m; i++) r += q[i * n + k] * a[i * n + j];
        for (int i = 0; i < m; i++) a[i * n + j] -= q[i * n + k] * r;
    }
}

// expect: pass tiles(32x1)
// step: block merge: a block of 32 threads computes 32 points
// tiles(32x1): the same in the emulator
