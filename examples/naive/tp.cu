// The transpose of a matrix (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096) outputs(b)
extern "C" __global__ void tp(const float *a, float *b, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx < m && idy < n) b[idy * m + idx] = a[idx * n + idy];
}

extern "C" void run_tp(const float *a, float *b, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((m + 15) / 16, (n + 15) / 16);
    tp<<<grid, block, 0, stream>>>(a, b, m, n);
}
