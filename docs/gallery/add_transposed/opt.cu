// A matrix plus the transpose of another.

#pragma warpwright naive sizes(m=4096, n=4096) outputs(c)
extern "C" __global__ void add_transposed(const float *a, const float *b, float *c, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    c[idy * n + idx] = 0.5f * (a[idy * n + idx] + b[idx * m + idy]);
}

extern "C" void run_add_transposed(const float *a, const float *b, float *c, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    add_transposed<<<grid, block, 0, stream>>>(a, b, c, m, n);
}
