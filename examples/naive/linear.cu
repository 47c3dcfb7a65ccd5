// A layer of a network: rows of x times rows of w, a bias, and what is below zero becomes zero.

#pragma warpwright naive sizes(m=4096, n=4096, k=1024) outputs(y)
extern "C" __global__ void linear(const float *x, const float *w, const float *bias, float *y, int m, int n, int k) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = bias[idx];
    for (int i = 0; i < k; i++) sum += x[idy * k + i] * w[idx * k + i];
    y[idy * n + idx] = fmaxf(sum, 0.0f);
}

extern "C" void run_linear(const float *x, const float *w, const float *bias, float *y, int m, int n, int k,
                           cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    linear<<<grid, block, 0, stream>>>(x, w, bias, y, m, n, k);
}
