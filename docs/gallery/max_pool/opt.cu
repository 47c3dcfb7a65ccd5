// The largest of every 2 x 2 pixels of a picture.

#pragma warpwright naive sizes(m=4096, n=4096) outputs(out)
extern "C" __global__ void max_pool(const float *in, float *out, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float upper = fmaxf(in[2 * idy * 2 * n + 2 * idx], in[2 * idy * 2 * n + 2 * idx + 1]);
    float lower = fmaxf(in[(2 * idy + 1) * 2 * n + 2 * idx], in[(2 * idy + 1) * 2 * n + 2 * idx + 1]);
    out[idy * n + idx] = fmaxf(upper, lower);
}

extern "C" void run_max_pool(const float *in, float *out, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    max_pool<<<grid, block, 0, stream>>>(in, out, m, n);
}
