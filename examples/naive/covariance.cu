// Covariances of the columns of a matrix whose columns have a mean of zero.

#pragma warpwright naive sizes(m=4096, n=4096) outputs(c)
extern "C" __global__ void covariance(const float *x, float *c, int m, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    c[i * n + j] = 0.0f;
    for (int k = 0; k < m; k++) c[i * n + j] += x[k * n + i] * x[k * n + j];
    c[i * n + j] /= (float)m - 1.0f;
}

extern "C" void run_covariance(const float *x, float *c, int m, int n, cudaStream_t stream) {
    dim3 block(32, 8), grid((n + 31) / 32, (n + 7) / 8);
    covariance<<<grid, block, 0, stream>>>(x, c, m, n);
}
