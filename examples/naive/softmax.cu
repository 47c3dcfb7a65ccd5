// Softmax of every row: a thread takes one row.

#pragma warpwright naive sizes(m=8192, n=2048) outputs(y) reassociate
extern "C" __global__ void softmax(const float *x, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= m) return;
    float most = x[idx * n];
    for (int i = 0; i < n; i++) most = fmaxf(most, x[idx * n + i]);
    float sum = 0;
    for (int i = 0; i < n; i++) sum += expf(x[idx * n + i] - most);
    for (int i = 0; i < n; i++) y[idx * n + i] = expf(x[idx * n + i] - most) / sum;
}

extern "C" void run_softmax(const float *x, float *y, int m, int n, cudaStream_t stream) {
    softmax<<<(m + 255) / 256, 256, 0, stream>>>(x, y, m, n);
}
