// Windows at the border, and an array that may be missing.
// test: pass tiles(32x8,points=1x2)

__global__ void depthwise(const float *in, const float *w, const float *bias, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = bias ? bias[0] : 0.0f;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int row = y + dy, column = x + dx;
            if (row >= 0 && row < height && column >= 0 && column < width)
                sum += in[row * width + column] * w[(dy + 1) * 3 + dx + 1];
        }
    out[y * width + x] = sum;
}

// expect: pass tiles(32x8,points=1x2)
// depthwise: block merge: a block of 256 threads computes 32 x 16 points
// depthwise: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
