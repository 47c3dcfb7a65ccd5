// The products of all pairs of columns of a matrix (a covariance, but for its scale).

#pragma warpwright naive sizes(m=8192, n=1024) outputs(c)
extern "C" __global__ void syrk(const float *a, float *c, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= n) return;
    float sum = 0;
    for (int i = 0; i < m; i++) sum += a[i * n + idy] * a[i * n + idx];
    c[idy * n + idx] = sum;
}

extern "C" void run_syrk(const float *a, float *c, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    syrk<<<grid, block, 0, stream>>>(a, c, m, n);
}
