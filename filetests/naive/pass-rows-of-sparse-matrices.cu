// How many turns there are stands in memory.
// test: pass tiles(256x1)

__global__ void k(const int *start, const int *column, const float *a, const float *b, float *c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0.0f;
    for (int j = start[row] & 7; j < (start[row + 1] & 15); j++) sum += a[j] * b[column[j] & 7];
    c[row] = sum;
}

// expect: pass tiles(256x1)
// k: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
