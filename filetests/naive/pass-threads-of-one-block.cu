// The threads of the one block are the points; the launcher asks whether there is but one.
// test: pass tiles(32x1)

__global__ void forward(float *zs, const float *biases, float *activations, int offset)
{
    zs[threadIdx.x] += biases[offset + threadIdx.x];
    activations[threadIdx.x] = 1.0f / (1.0f + expf(-zs[threadIdx.x]));
}

// expect: pass tiles(32x1)
// forward: block merge: a block of 32 threads computes 32 points
// tiles(32x1): the same in the emulator
