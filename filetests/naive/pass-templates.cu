// A template as the one instance that the file makes of it; what it launches compares types and numbers.
// test: pass tiles(32x8,points=1x2)

template <typename T, int RADIUS = 2>
__global__ void smoothed(const T *__restrict__ in, T *out, int n, T weight)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y;
    if (i >= n) return;
    T sum = 0;
    for (int k = 0; k < RADIUS; k++) sum += in[j * (n + RADIUS) + i + k];
    out[j * n + i] = static_cast<T>(sum * weight);
}

void run(const float *in, float *out, int n, int rows, float weight)
{
    smoothed<float, 3><<<dim3((n + 255) / 256, rows), 256>>>(in, out, n, weight);
}

// expect: pass tiles(32x8,points=1x2)
// smoothed: block merge: a block of 256 threads computes 32 x 16 points
// smoothed: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
