// A guard that leaves one point: it may store what does not depend on its place.
// test: naive team(64, 1)

#pragma warpwright naive reassociate
__global__ void dot(const float *a, const float *b, float *result, int n)
{
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid == 0) {
        float s = 0;
        for (int i = 0; i < n; i++) s += a[i] * b[i];
        *result = s;
    }
}
