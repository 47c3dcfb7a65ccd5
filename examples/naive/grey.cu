// The brightness of a picture with three bytes a pixel, as real numbers.

#pragma warpwright naive sizes(n=33554432) outputs(out)
extern "C" __global__ void grey(const unsigned char *picture, float *out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    out[idx] = 0.299f * picture[3 * idx] + 0.587f * picture[3 * idx + 1] + 0.114f * picture[3 * idx + 2];
}

extern "C" void run_grey(const unsigned char *picture, float *out, int n, cudaStream_t stream) {
    grey<<<(n + 255) / 256, 256, 0, stream>>>(picture, out, n);
}
