// Conditions, loops and variables of a function's own are no effects.
// test: pass fours(32,1)

#define STEPS 4
constexpr float least = 0.25f;

__device__ float clipped(float x) {
    if (x < least) return least;
    else x = x * 0.5f;
    return x;
}

__device__ __forceinline__ float root(float x) {
    float y[1] = {1.0f};
    for (int i = 0; i < STEPS; i++) y[0] = 0.5f * (y[0] + x / y[0]);
    return clipped(y[0]);
}

__global__ void roots(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = root(a[x]);
}

// expect: pass fours(32,1)
// roots: a thread takes four neighbouring points, and loads or stores their elements of `a`, `c` together
// fours(32, 1): the same in the emulator
