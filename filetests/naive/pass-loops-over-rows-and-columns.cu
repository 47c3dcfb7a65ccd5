// Loops over the grid in each other, the outer one over blocks; `continue` leaves a point out.
// test: pass tiles(32x8,points=1x2)

__global__ void scaled(const float *in, const float *by, float *out, int rows, int cols)
{
    for (int y = blockIdx.y; y < rows; y += gridDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < cols; x += blockDim.x * gridDim.x) {
            float s = by[x];
            if (s < 0.5f) continue;
            out[y * cols + x] = in[y * cols + x] * s;
        }
}

// expect: pass tiles(32x8,points=1x2)
// scaled: block merge: a block of 256 threads computes 32 x 16 points
// scaled: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
