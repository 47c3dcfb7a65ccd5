// test: naive tiles(32x8, stage=4x1)
//  section 3.4: what nobody shares stays where it is

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += a[(i * m + y) * n + x];
    c[y * n + x] = sum;
}

// expect: naive tiles(32x8, stage=4x1)
// no loop has an operand to be staged in shared memory
