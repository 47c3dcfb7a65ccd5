// c = alpha * transpose(a) * b + beta * c.

#pragma warpwright naive sizes(m=2048, n=2048, k=4096) outputs(c)
extern "C" __global__ void mm_tn(const float *a, const float *b, float *c, float alpha, float beta, int m, int n,
                                 int k) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[i * m + idy] * b[i * n + idx];
    c[idy * n + idx] = alpha * sum + beta * c[idy * n + idx];
}

extern "C" void run_mm_tn(const float *a, const float *b, float *c, float alpha, float beta, int m, int n, int k,
                          cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    mm_tn<<<grid, block, 0, stream>>>(a, b, c, alpha, beta, m, n, k);
}
