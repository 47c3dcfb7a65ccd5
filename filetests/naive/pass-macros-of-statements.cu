// Macros that stand for statements, one behind the other.
// test: pass tiles(256x1)

#define STEP1  s = v - s * 0.5f;
#define STEP2  STEP1 t = v - t;
#define STEPS  \
     STEP2 STEP2 STEP2

__global__ void steps(const float *a, float *c, int n, int turns, float v)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float s = a[x], t = 10.0f - s;
    for (int j = 0; j < turns; ++j) {
        STEPS STEPS
        STEP1 STEP1
    }
    c[x] = s + t;
}

// expect: pass tiles(256x1)
// steps: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
