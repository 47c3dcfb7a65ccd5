// The product of two matrices in double precision.

#pragma warpwright naive sizes(m=2048, n=2048, k=2048) outputs(c)
extern "C" __global__ void mm_double(const double *a, const double *b, double *c, int m, int n, int k) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    double sum = 0;
    for (int i = 0; i < k; i++) sum += a[idy * k + i] * b[i * n + idx];
    c[idy * n + idx] = sum;
}

extern "C" void run_mm_double(const double *a, const double *b, double *c, int m, int n, int k,
                              cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    mm_double<<<grid, block, 0, stream>>>(a, b, c, m, n, k);
}
