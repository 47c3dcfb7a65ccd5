// How often each of 256 values occurs. The counts are zero before.

#pragma warpwright naive sizes(n=67108864) outputs(counts)
extern "C" __global__ void histogram(const unsigned char *values, unsigned int *counts, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) atomicAdd(&counts[values[idx]], 1u);
}

extern "C++" {

// a block counts in shared memory what goes to `counts`, and changes each element there once
__global__ void __launch_bounds__(512)
histogram_totals_wide(const unsigned char *values, unsigned int *counts, int n, int idx_end)
{
    __shared__ unsigned int counts_own[256];
    for (int cell = threadIdx.x; cell < 256; cell += 512) counts_own[cell] = 0;
    __syncthreads();
    const int first = blockIdx.x * 131072 + threadIdx.x * 4;
    for (int turn = 0; turn < 64; turn += 4) {
        alignas(16) unsigned char values_four[4][4];
        #pragma unroll
        for (int ahead = 0; ahead < 4; ahead++) {
            const int begin = first + (turn + ahead) * 2048;
            if (begin >= idx_end) break;
            *reinterpret_cast<int *>(&values_four[ahead][0]) = *reinterpret_cast<const int *>(&values[begin]);
        }
        #pragma unroll
        for (int ahead = 0; ahead < 4; ahead++) {
            const int begin_2 = first + (turn + ahead) * 2048;
            if (begin_2 >= idx_end) break;
            #pragma unroll
            for (int near = 0; near < 4; near++) {
                atomicAdd(&counts_own[values_four[ahead][near]], (unsigned)1);
            }
        }
    }
    __syncthreads();
    for (int cell = threadIdx.x; cell < 256; cell += 512) {
        if (counts_own[cell] != 0) atomicAdd(&counts[cell], counts_own[cell]);
    }
}

__global__ void __launch_bounds__(512)
histogram_totals(const unsigned char *values, unsigned int *counts, int n, int idx_end)
{
    __shared__ unsigned int counts_own[256];
    for (int cell = threadIdx.x; cell < 256; cell += 512) counts_own[cell] = 0;
    __syncthreads();
    const int first = blockIdx.x * 32768 + threadIdx.x;
    for (int turn = 0; turn < 64; turn++) {
        const int idx = first + turn * 512;
        if (idx >= idx_end) break;
        atomicAdd(&counts_own[values[idx]], (unsigned)1);
    }
    __syncthreads();
    for (int cell = threadIdx.x; cell < 256; cell += 512) {
        if (counts_own[cell] != 0) atomicAdd(&counts[cell], counts_own[cell]);
    }
}

static inline cudaError_t histogram_try(dim3 grid, dim3 block, const unsigned char *values, unsigned int *counts, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid.x * block.x;
    if (idx_end > (long long)n) idx_end = (long long)n;
    if (idx_end <= 0 ||
        idx_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)n > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long values_first = 0;
    long long values_last = (long long)idx_end - 1;
    long long counts_first = 0;
    long long counts_last = 255;
    if (((const char*)(values + values_first) < (const char*)(counts + counts_last) + 4 && (const char*)(counts + counts_first) < (const char*)(values + values_last) + 1)) return cudaErrorNotSupported;
    if ((size_t)values % 4 == 0 &&
        ((long long)idx_end) % 4 == 0) {
        histogram_totals_wide<<<dim3((unsigned)((idx_end + 131071) / 131072), (unsigned)(1), (unsigned)(1)), 512, 0, stream_>>>(
            values, counts, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        histogram_totals<<<dim3((unsigned)((idx_end + 32767) / 32768), (unsigned)(1), (unsigned)(1)), 512, 0, stream_>>>(
            values, counts, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of histogram<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void histogram_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const unsigned char *values, unsigned int *counts, int n)
{
    if (histogram_try(grid, block, values, counts, n, stream_) == cudaErrorNotSupported)
        histogram<<<grid, block, shared, stream_>>>(values, counts, n);
}

}  // extern "C++"


extern "C" void run_histogram(const unsigned char *values, unsigned int *counts, int n, cudaStream_t stream) {
    cudaMemsetAsync(counts, 0, 256 * sizeof(unsigned int), stream);
    histogram_launch((n + 255) / 256, 256, 0, stream, values, counts, n);
}
