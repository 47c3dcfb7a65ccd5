// The outer product of two vectors (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096) outputs(c)
extern "C" __global__ void vv(const float *x, const float *y, float *c, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx < n && idy < m) c[idy * n + idx] = x[idy] * y[idx];
}

extern "C" void run_vv(const float *x, const float *y, float *c, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    vv<<<grid, block, 0, stream>>>(x, y, c, m, n);
}
