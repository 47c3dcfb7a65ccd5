// Planes share their input, rows do not: a tile takes x and z, and the filter's rows have a constant length.
// test: naive tiles(16x8, points=4x8, run=4x4, stage=8x3-turned, planes=yes)
// test: pass tiles(8x4,points=2x4,run=1x4,stage=4x3-turned,planes=yes)
// contains: tiles lie along x and z, whose planes share operands
// contains: `w`: 72 x 64 elements a part in shared memory
// contains: const int block_y = blockIdx.z * 64;
// contains: const int idy = blockIdx.y;
// contains: tiles(8x4, points=2x4, run=1x4, stage=4x3-turned, planes=yes): the same in the emulator

__global__ void conv2d(const float *in, const float *w, float *out, int outs, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    int idz = blockIdx.z;
    if (idx >= n || idy >= m || idz >= outs) return;
    float sum = 0;
    for (int c = 0; c < 16; c++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                sum += in[(c * (m + 2) + idy + i) * (n + 2) + idx + j] * w[((idz * 16 + c) * 3 + i) * 3 + j];
    out[(idz * m + idy) * n + idx] = sum;
}
