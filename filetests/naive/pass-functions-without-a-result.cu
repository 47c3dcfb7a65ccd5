// Functions without a result are executed where they are called; what they get by reference is the caller's.
// test: pass tiles(32x8,points=1x2)

__device__ inline void velocity(float density, float3 &momentum, float3 &velocity)
{
    velocity.x = momentum.x / density;
    velocity.y = momentum.y / density;
    velocity.z = momentum.z / density;
}

__device__ float squared(float3 &v) { return v.x * v.x + v.y * v.y + v.z * v.z; }

__device__ void sorted(float &a, float &b, int n)
{
    if (n < 0) return;
    for (int i = 0; i < n; i++) {
        if (a <= b) return;
        float t = a;
        a = b;
        b = t;
    }
}

__global__ void flux(const float *density, const float *a, float *c, int n, int m)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    float3 momentum = {a[x], a[y], a[x] + a[y]};
    float3 v;
    velocity(density[y * n + x], momentum, v);
    float s = squared(v), t = v.x;
    sorted(s, t, m);
    c[y * n + x] = s - t;
}

// expect: pass tiles(32x8,points=1x2)
// flux: block merge: a block of 256 threads computes 32 x 16 points
// flux: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
