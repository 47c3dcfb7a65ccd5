// What one head of attention gives: the weights of every query times the values.

#pragma warpwright naive sizes(n=4096, d=64) outputs(o)
extern "C" __global__ void attention_values(const float *p, const float *v, float *o, int n, int d) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= d || idy >= n) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += p[idy * n + i] * v[i * d + idx];
    o[idy * d + idx] = sum;
}

extern "C" void run_attention_values(const float *p, const float *v, float *o, int n, int d, cudaStream_t stream) {
    dim3 block(16, 16), grid((d + 15) / 16, (n + 15) / 16);
    attention_values<<<grid, block, 0, stream>>>(p, v, o, n, d);
}
