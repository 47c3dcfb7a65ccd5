// The sums of all beginnings of a list.

#pragma warpwright naive sizes(n=131072) outputs(y)
extern "C" __global__ void prefix_sum(const int *x, int *y, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    int sum = 0;
    for (int i = 0; i <= idx; i++) sum += x[i];
    y[idx] = sum;
}

extern "C++" {

// a block adds up the turns in front of its 4096 points once, and shares them
__global__ void __launch_bounds__(1024)
prefix_sum_prefix(const int *x, int *y, int n, int idx_end)
{
    const int first = blockIdx.x * 4096;
    __shared__ int parts[32];
    // What lies in front of the block's points.
    int front = 0;
    #pragma unroll 4
    for (int i = 0 + (int)threadIdx.x; i < first; i += 1024) {
        front += x[i];
    }
    for (int far = 16; far > 0; far /= 2) front = front + __shfl_xor_sync(0xffffffff, front, far);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = front;
    __syncthreads();
    front = parts[0];
    for (int warp = 1; warp < 32; warp++) front = front + parts[warp];
    // The thread's 4 points.
    int own[4];
    int any = 0;
    #pragma unroll
    for (int point = 0; point < 4; point++) {
        const int idx = first + (int)threadIdx.x * 4 + point;
        const int i = idx;
        if (idx < idx_end && i >= 0) {
            any += x[i];
        }
        own[point] = any;
    }
    int before = any;
    for (int far = 1; far < 32; far *= 2) {
        const int other = __shfl_up_sync(0xffffffff, before, far);
        if (threadIdx.x % 32 >= far) before = other + before;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 31) parts[threadIdx.x / 32] = before;
    __syncthreads();
    before = __shfl_up_sync(0xffffffff, before, 1);
    if (threadIdx.x % 32 == 0) before = 0;
    for (int warp = 0; warp < (int)threadIdx.x / 32; warp++) front = front + parts[warp];
    front = front + before;
    #pragma unroll
    for (int point = 0; point < 4; point++) {
        const int idx = first + (int)threadIdx.x * 4 + point;
        if (idx < idx_end) {
            int sum = 0;
            sum = sum + front + own[point];
            y[idx] = sum;
        }
    }
}

static inline cudaError_t prefix_sum_try(dim3 grid, dim3 block, const int *x, int *y, int n, cudaStream_t stream_)
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
    long long x_first = 0;
    long long x_last = (long long)idx_end - 1;
    long long y_first = 0;
    long long y_last = (long long)idx_end - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4)) return cudaErrorNotSupported;
    {
        prefix_sum_prefix<<<dim3((unsigned)((idx_end + 4095) / 4096), (unsigned)(1), (unsigned)(1)), 1024, 0, stream_>>>(
            x, y, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of prefix_sum<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void prefix_sum_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const int *x, int *y, int n)
{
    if (prefix_sum_try(grid, block, x, y, n, stream_) == cudaErrorNotSupported)
        prefix_sum<<<grid, block, shared, stream_>>>(x, y, n);
}

}  // extern "C++"


extern "C" void run_prefix_sum(const int *x, int *y, int n, cudaStream_t stream) {
    prefix_sum_launch((n + 255) / 256, 256, 0, stream, x, y, n);
}
