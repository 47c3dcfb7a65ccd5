// The transpose of a matrix times a vector (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096) outputs(y) reassociate
extern "C" __global__ void tmv(const float *a, const float *x, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float sum = 0;
    for (int i = 0; i < m; i++) sum += a[i * n + idx] * x[i];
    y[idx] = sum;
}

extern "C" void run_tmv(const float *a, const float *x, float *y, int m, int n, cudaStream_t stream) {
    tmv<<<(n + 255) / 256, 256, 0, stream>>>(a, x, y, m, n);
}
