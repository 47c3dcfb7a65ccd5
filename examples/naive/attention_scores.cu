// The scores of one head of attention, masked: a query sees no key behind it.

#pragma warpwright naive sizes(n=4096, d=64) outputs(s)
extern "C" __global__ void attention_scores(const float *q, const float *k, float *s, int n, int d, float scale) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= n) return;
    float sum = 0;
    for (int i = 0; i < d; i++) sum += q[idy * d + i] * k[idx * d + i];
    s[idy * n + idx] = idx <= idy ? sum * scale : -1e30f;
}

extern "C" void run_attention_scores(const float *q, const float *k, float *s, int n, int d, float scale,
                                     cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    attention_scores<<<grid, block, 0, stream>>>(q, k, s, n, d, scale);
}
