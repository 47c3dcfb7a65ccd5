// Every turn of a loop over the grid is a point; half of the blocks that would be needed are launched.
// test: pass fours(64,1)

__global__ void relu(int n, const float *__restrict__ x, float *__restrict__ y, float slope)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = gridDim.x * blockDim.x;
    const float zero = 0.0f;
    while (i < n) {
        float v = x[i];
        if (v < zero) v *= slope;
        y[i] = v;
        i += stride;
    }
}

// expect: pass fours(64,1)
// relu: a thread takes four neighbouring points, and loads or stores their elements of `x`, `y` together
// fours(64, 1): the same in the emulator
