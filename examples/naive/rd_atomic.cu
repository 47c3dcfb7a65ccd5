// The sum of a vector as it is often written: every thread adds its element to the result.

#pragma warpwright naive sizes(n=16777216) outputs(s) reassociate
extern "C" __global__ void rd_atomic(const float *a, float *s, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) atomicAdd(s, a[idx]);
}

extern "C" void run_rd_atomic(const float *a, float *s, int n, cudaStream_t stream) {
    cudaMemsetAsync(s, 0, sizeof(float), stream);
    rd_atomic<<<(n + 255) / 256, 256, 0, stream>>>(a, s, n);
}
