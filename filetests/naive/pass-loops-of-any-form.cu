// `break`, `continue`, several counters, bounds from memory: such loops are kept as they are, their jumps as flags.
// test: pass tiles(32x8,points=1x2)

__global__ void first(const float *a, const float *b, float *c, int n, int m)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    int found = -1;
    int i;
    for (i = 0; i < n; i++) {
        if (a[y * n + i] >= b[i * n + x]) {
            found = i;
            break;
        }
        if (i > x) continue;
        found -= 2;
    }
    c[y * n + x] = found + i;
}

__global__ void rows(const int *ends, const int *columns, const float *a, const float *b, float *c, int n, int m)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < m) {
        float sum = 0.0f;
        for (int j = ends[y] & 7; j < (ends[y + 1] & 15); j++)
            sum += a[j] * b[(columns[j] & 3) * n + x];
        c[y * n + x] = sum;
    }
}

__global__ void both(const float *a, float *c, int n, int m, int last)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    float sum = 0.0f;
    int i = 0;
    if (m % 2) {
        sum = a[x];
        i++;
        last++;
    }
    for (; i < n && last < m; i += 2, last += 2) {
        sum += a[i * n + x];
        if (sum > 100.0f) return;
    }
    c[y * n + x] = sum;
}

// expect: pass tiles(32x8,points=1x2)
// first: block merge: a block of 256 threads computes 32 x 16 points
// first: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// rows: block merge: a block of 256 threads computes 32 x 16 points
// rows: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// both: block merge: a block of 256 threads computes 32 x 16 points
// both: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
// tiles(32x8, points=1x2): the same in the emulator
// tiles(32x8, points=1x2): the same in the emulator
