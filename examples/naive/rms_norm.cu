// Every row over the root of its mean square: a thread takes one row.

#pragma warpwright naive sizes(m=8192, n=4096) outputs(y) reassociate
extern "C" __global__ void rms_norm(const float *x, const float *scale, float *y, int m, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) return;
    float squares = 0;
    for (int i = 0; i < n; i++) squares += x[row * n + i] * x[row * n + i];
    float inverse = rsqrtf(squares / n + 1e-6f);
    for (int i = 0; i < n; i++) y[row * n + i] = x[row * n + i] * inverse * scale[i];
}

extern "C" void run_rms_norm(const float *x, const float *scale, float *y, int m, int n, cudaStream_t stream) {
    rms_norm<<<(m + 255) / 256, 256, 0, stream>>>(x, scale, y, m, n);
}
