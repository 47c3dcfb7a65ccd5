// Rows of `w` are five times `ins` apart: those between them are not copied (316 x 40 elements before).
// test: naive tiles(16x16, points=8x4, run=4x1, stage=8x5)
// test: pass tiles(8x8,points=2x2,stage=4x5)
// contains: `w`: 64 x 40 elements a part in shared memory
// contains: tiles(8x8, points=2x2, stage=4x5): the same in the emulator
// lacks: 316

__global__ void conv1d(const float *in, const float *w, float *out, int outs, int ins, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= outs) return;
    float sum = 0;
    for (int c = 0; c < ins; c++)
        for (int t = 0; t < 5; t++) sum += in[c * (n + 4) + idx + t] * w[(idy * ins + c) * 5 + t];
    out[idy * n + idx] = sum;
}
