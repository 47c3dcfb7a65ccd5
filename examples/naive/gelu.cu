// A bias for each column, and the Gaussian error unit in its form with a hyperbolic tangent.

#pragma warpwright naive sizes(m=8192, n=4096) outputs(y)
extern "C" __global__ void gelu(const float *x, const float *bias, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float v = x[idy * n + idx] + bias[idx];
    y[idy * n + idx] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}

extern "C" void run_gelu(const float *x, const float *bias, float *y, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    gelu<<<grid, block, 0, stream>>>(x, bias, y, m, n);
}
