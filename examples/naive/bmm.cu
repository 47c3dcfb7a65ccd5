// Products of many matrices, one block of rows after the other.

#pragma warpwright naive sizes(batch=64, m=512, n=512, k=512) outputs(c)
extern "C" __global__ void bmm(const float *a, const float *b, float *c, int batch, int m, int n, int k) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    int idz = blockIdx.z;
    if (idx >= n || idy >= m || idz >= batch) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[(idz * m + idy) * k + i] * b[(idz * k + i) * n + idx];
    c[(idz * m + idy) * n + idx] = sum;
}

extern "C" void run_bmm(const float *a, const float *b, float *c, int batch, int m, int n, int k,
                        cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16, batch);
    bmm<<<grid, block, 0, stream>>>(a, b, c, batch, m, n, k);
}
