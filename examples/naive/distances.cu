// The squared distances between all points of two sets, in d dimensions.

#pragma warpwright naive sizes(m=4096, n=4096, d=64) outputs(out)
extern "C" __global__ void distances(const float *a, const float *b, float *out, int m, int n, int d) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < d; i++) {
        float difference = a[idy * d + i] - b[idx * d + i];
        sum += difference * difference;
    }
    out[idy * n + idx] = sum;
}

extern "C" void run_distances(const float *a, const float *b, float *out, int m, int n, int d, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    distances<<<grid, block, 0, stream>>>(a, b, out, m, n, d);
}
