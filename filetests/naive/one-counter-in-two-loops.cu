// The second loop begins anew; between them the counter is not read.
// test: accesses

#define NI 2048
#define NJ 2048

__global__ void project(float *a, float *r, const float *q, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if ((j > k) && (j < NJ))
    {
        int i;
        r[k * NJ + j] = 0.0f;
        for (i = 0; i < NI; i++)
            r[k * NJ + j] += q[i * NJ + k] * a[i * NJ + j];
        for (i = 0; i < NI; i++)
            a[i * NJ + j] -= q[i * NJ + k] * r[k * NJ + j];
    }
}

// expect: accesses
// r[2048 * k + j]: neighbouring threads have neighbours: coalesced
// q[k + 2048 * i]: the same element for neighbouring threads
// a[j + 2048 * i]: neighbouring threads have neighbours: coalesced
