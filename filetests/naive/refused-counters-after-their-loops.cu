// test: accesses

__global__ void k(float *a, const float *b, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n)
    {
        int i;
        float s = 0;
        for (i = 0; i < n; i++)
            s += b[i * n + x];
        a[x] = s + i;
    }
}
