// How often each of 256 values occurs. The counts are zero before.

#pragma warpwright naive sizes(n=67108864) outputs(counts)
extern "C" __global__ void histogram(const unsigned char *values, unsigned int *counts, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) atomicAdd(&counts[values[idx]], 1u);
}

extern "C" void run_histogram(const unsigned char *values, unsigned int *counts, int n, cudaStream_t stream) {
    cudaMemsetAsync(counts, 0, 256 * sizeof(unsigned int), stream);
    histogram<<<(n + 255) / 256, 256, 0, stream>>>(values, counts, n);
}
