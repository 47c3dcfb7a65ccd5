// The sums of all beginnings of a list.

#pragma warpwright naive sizes(n=131072) outputs(y)
extern "C" __global__ void prefix_sum(const int *x, int *y, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    int sum = 0;
    for (int i = 0; i <= idx; i++) sum += x[i];
    y[idx] = sum;
}

extern "C" void run_prefix_sum(const int *x, int *y, int n, cudaStream_t stream) {
    prefix_sum<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
