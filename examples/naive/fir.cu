// A filter over a signal, which has taps - 1 more elements than the result.

#pragma warpwright naive sizes(n=4194304, taps=128) outputs(y)
extern "C" __global__ void fir(const float *x, const float *h, float *y, int n, int taps) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float sum = 0;
    for (int i = 0; i < taps; i++) sum += x[idx + i] * h[i];
    y[idx] = sum;
}

extern "C" void run_fir(const float *x, const float *h, float *y, int n, int taps, cudaStream_t stream) {
    fir<<<(n + 255) / 256, 256, 0, stream>>>(x, h, y, n, taps);
}
