// The transpose of a matrix times a vector (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096) outputs(y) reassociate
extern "C" __global__ void tmv(const float *a, const float *x, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float sum = 0;
    for (int i = 0; i < m; i++) sum += a[i * n + idx] * x[i];
    y[idx] = sum;
}

extern "C++" {

// 32 warps of a block share the turns; their lanes are neighbouring points; `sum` is combined at the end
__global__ void __launch_bounds__(1024, 1)
tmv_team_wide(const float *a, const float *x, float *y, int m, int n, int idx_end)
{
    const int column = threadIdx.x % 32;
    const int rank = threadIdx.x / 32;
    const int place = blockIdx.x * 32 + column;
    const bool inside = place < idx_end;
    // Threads outside compute what the last one computes, and store nothing.
    const int idx = min(place, idx_end - 1);
    float sum = 0;
    // Here a thread has four neighbouring points, and a warp four turns at once.
    const int first = min((int)(blockIdx.x * 32 + threadIdx.x % 8 * 4), idx_end - 4);
    const int row = threadIdx.x / 8;
    float sum_four[4] = {};
    #pragma unroll 8
    for (int i = row; i < m; i += 128) {
        alignas(16) float a_four[4];
        *reinterpret_cast<float4 *>(&a_four[0]) = *reinterpret_cast<const float4 *>(&a[n * i + first]);
        #pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            sum_four[turn] += a_four[turn] * x[i];
        }
    }
    __shared__ float sum_parts[32][32];
    #pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        for (int far = 8; far < 32; far *= 2) sum_four[turn] = sum_four[turn] + __shfl_xor_sync(0xffffffff, sum_four[turn], far);
        if (threadIdx.x % 32 < 8) sum_parts[rank][threadIdx.x % 8 * 4 + turn] = sum_four[turn];
    }
    float sum_own;
    __syncthreads();
    if (rank != 0) return;
    sum_own = sum_parts[0][column];
    #pragma unroll
    for (int part = 1; part < 32; part++) sum_own = sum_own + sum_parts[part][column];
    sum = sum + sum_own;
    if (rank == 0 && inside) {
        y[idx] = sum;
    }
}

__global__ void __launch_bounds__(1024, 1)
tmv_team(const float *a, const float *x, float *y, int m, int n, int idx_end)
{
    const int column = threadIdx.x % 32;
    const int rank = threadIdx.x / 32;
    const int place = blockIdx.x * 32 + column;
    const bool inside = place < idx_end;
    // Threads outside compute what the last one computes, and store nothing.
    const int idx = min(place, idx_end - 1);
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 8
    for (int i = rank; i < m; i += 32) {
        sum_own += a[n * i + idx] * x[i];
    }
    __shared__ float sum_parts[32][32];
    sum_parts[rank][column] = sum_own;
    __syncthreads();
    if (rank != 0) return;
    sum_own = sum_parts[0][column];
    #pragma unroll
    for (int part = 1; part < 32; part++) sum_own = sum_own + sum_parts[part][column];
    sum = sum + sum_own;
    if (rank == 0 && inside) {
        y[idx] = sum;
    }
}

static inline cudaError_t tmv_try(dim3 grid, dim3 block, const float *a, const float *x, float *y, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid.x * block.x;
    if (idx_end > (long long)n) idx_end = (long long)n;
    if (idx_end <= 0 ||
        idx_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)n > 2147483647.0 ||
        (double)m * (double)n - (double)n > 2147483647.0 ||
        (double)m * (double)n + (double)idx_end - (double)n - 1 > 2147483647.0 ||
        (double)m - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long a_first = 0;
    long long a_last = (long long)m * (long long)n + (long long)idx_end - (long long)n - 1;
    long long x_first = 0;
    long long x_last = (long long)m - 1;
    long long y_first = 0;
    long long y_last = (long long)idx_end - 1;
    if (((const char*)(a + a_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(a + a_last) + 4) ||
        ((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)a % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        ((long long)idx_end) % 4 == 0) {
        tmv_team_wide<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 1024, 0, stream_>>>(
            a, x, y, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        tmv_team<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 1024, 0, stream_>>>(
            a, x, y, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of tmv<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void tmv_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *a, const float *x, float *y, int m, int n)
{
    if (tmv_try(grid, block, a, x, y, m, n, stream_) == cudaErrorNotSupported)
        tmv<<<grid, block, shared, stream_>>>(a, x, y, m, n);
}

}  // extern "C++"


extern "C" void run_tmv(const float *a, const float *x, float *y, int m, int n, cudaStream_t stream) {
    tmv_launch((n + 255) / 256, 256, 0, stream, a, x, y, m, n);
}
