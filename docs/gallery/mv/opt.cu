// A matrix times a vector (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096) outputs(y) reassociate
extern "C" __global__ void mv(const float *a, const float *x, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= m) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += a[idx * n + i] * x[i];
    y[idx] = sum;
}

extern "C++" {

// 128 threads share the turns of a point, so that neighbours load neighbouring elements; `sum` is combined at the end
__global__ void __launch_bounds__(128, 6)
mv_team_wide(const float *a, const float *x, float *y, int m, int n, int idx_end)
{
    const int rank = threadIdx.x;
    const int idx = blockIdx.x;
    float sum = 0;
    float sum_own = 0;
    float sum_four[4] = {sum_own, sum_own, sum_own, sum_own};
    #pragma unroll 8
    for (int i_first = rank * 4; i_first < n; i_first += 512) {
        alignas(16) float a_four[4];
        *reinterpret_cast<float4 *>(&a_four[0]) = *reinterpret_cast<const float4 *>(&a[n * idx + i_first]);
        alignas(16) float x_four[4];
        *reinterpret_cast<float4 *>(&x_four[0]) = *reinterpret_cast<const float4 *>(&x[i_first]);
        #pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            sum_four[turn] += a_four[turn] * x_four[turn];
        }
    }
    sum_own = (sum_four[0] + sum_four[1]) + (sum_four[2] + sum_four[3]);
    for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
    __shared__ float sum_parts[4];
    if (rank % 32 == 0) sum_parts[rank / 32] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0];
    #pragma unroll
    for (int part = 1; part < 4; part++) sum_own = sum_own + sum_parts[part];
    sum = sum + sum_own;
    if (rank == 0) {
        y[idx] = sum;
    }
}

__global__ void __launch_bounds__(128, 6)
mv_team(const float *a, const float *x, float *y, int m, int n, int idx_end)
{
    const int rank = threadIdx.x;
    const int idx = blockIdx.x;
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 8
    for (int i = rank; i < n; i += 128) {
        sum_own += a[n * idx + i] * x[i];
    }
    for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
    __shared__ float sum_parts[4];
    if (rank % 32 == 0) sum_parts[rank / 32] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0];
    #pragma unroll
    for (int part = 1; part < 4; part++) sum_own = sum_own + sum_parts[part];
    sum = sum + sum_own;
    if (rank == 0) {
        y[idx] = sum;
    }
}

static inline cudaError_t mv_try(dim3 grid, dim3 block, const float *a, const float *x, float *y, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid.x * block.x;
    if (idx_end > (long long)m) idx_end = (long long)m;
    if (idx_end <= 0 ||
        idx_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)m > 2147483647.0 ||
        (double)n * (double)idx_end - (double)n > 2147483647.0 ||
        (double)n * (double)idx_end - 1 > 2147483647.0 ||
        (double)n - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long a_first = 0;
    long long a_last = (long long)n * (long long)idx_end - 1;
    long long x_first = 0;
    long long x_last = (long long)n - 1;
    long long y_first = 0;
    long long y_last = (long long)idx_end - 1;
    if (((const char*)(a + a_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(a + a_last) + 4) ||
        ((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)a % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)x % 16 == 0) {
        mv_team_wide<<<dim3((unsigned)(idx_end), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            a, x, y, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        mv_team<<<dim3((unsigned)(idx_end), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            a, x, y, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of mv<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void mv_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *a, const float *x, float *y, int m, int n)
{
    if (mv_try(grid, block, a, x, y, m, n, stream_) == cudaErrorNotSupported)
        mv<<<grid, block, shared, stream_>>>(a, x, y, m, n);
}

}  // extern "C++"


extern "C" void run_mv(const float *a, const float *x, float *y, int m, int n, cudaStream_t stream) {
    mv_launch((m + 255) / 256, 256, 0, stream, a, x, y, m, n);
}
