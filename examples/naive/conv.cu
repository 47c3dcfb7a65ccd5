// Convolution of an image with a square filter (Table 1 of Yang et al., PLDI 2010). The image has f - 1
// more rows and columns than the result.

#pragma warpwright naive sizes(m=4096, n=4096, f=32) outputs(out)
extern "C" __global__ void conv(const float *in, const float *filter, float *out, int m, int n, int f) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    int width = n + f - 1;
    float sum = 0;
    for (int i = 0; i < f; i++)
        for (int j = 0; j < f; j++) sum += in[(idy + i) * width + idx + j] * filter[i * f + j];
    out[idy * n + idx] = sum;
}

extern "C" void run_conv(const float *in, const float *filter, float *out, int m, int n, int f,
                         cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    conv<<<grid, block, 0, stream>>>(in, filter, out, m, n, f);
}
