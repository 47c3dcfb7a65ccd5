// A sweep over a grid with a margin of one: every point from its four neighbours and itself.

#pragma warpwright naive sizes(m=8192, n=8192) outputs(out)
extern "C" __global__ void sweep5(const float *in, float *out, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx < 1 || idx >= n - 1 || idy < 1 || idy >= m - 1) return;
    out[idy * n + idx] = 0.5f * in[idy * n + idx] + 0.125f * (in[idy * n + idx - 1] + in[idy * n + idx + 1] +
                                                              in[(idy - 1) * n + idx] + in[(idy + 1) * n + idx]);
}

extern "C" void run_sweep5(const float *in, float *out, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    sweep5<<<grid, block, 0, stream>>>(in, out, m, n);
}
