// What is done before a `return` takes the place of the rest.
// test: pass tiles(32x8,points=1x2)

__global__ void masked(float *out, const float *in, int T)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= T * T) return;
    int col = i % T, row = i / T;
    if (col > row) {
        out[i] = -INFINITY;
        return;
    }
    out[i] = in[row * T + col] * 0.125f;
}

// expect: pass tiles(32x8,points=1x2)
// masked: block merge: a block of 256 threads computes 32 x 16 points
// masked: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
