// The product of two matrices (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096, k=4096) outputs(c)
extern "C" __global__ void mm(const float *a, const float *b, float *c, int m, int n, int k) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[idy * k + i] * b[i * n + idx];
    c[idy * n + idx] = sum;
}

extern "C" void run_mm(const float *a, const float *b, float *c, int m, int n, int k, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    mm<<<grid, block, 0, stream>>>(a, b, c, m, n, k);
}
