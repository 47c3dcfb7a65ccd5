// A point stores its row and its column behind the diagonal; of each pair of places the smaller is the point.
// test: pass tiles(32x1)

__global__ void corr(const float *data, float *symmat, int m, int n)
{
    int j1 = blockIdx.x * blockDim.x + threadIdx.x;
    if (j1 < m - 1) {
        symmat[j1 * m + j1] = 1.0f;
        for (int j2 = j1 + 1; j2 < m; j2++) {
            symmat[j1 * m + j2] = 0.0f;
            for (int i = 0; i < n; i++) symmat[j1 * m + j2] += data[i * m + j1] * data[i * m + j2];
            symmat[j2 * m + j1] = symmat[j1 * m + j2];
        }
    }
}

// expect: pass tiles(32x1)
// corr: block merge: a block of 32 threads computes 32 points
// tiles(32x1): the same in the emulator
