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

extern "C++" {

// 128 threads share the turns of a point, so that neighbours load neighbouring elements; `most`, `sum` is combined at the end
__global__ void __launch_bounds__(128)
softmax_team_wide(const float *x, float *y, int m, int n, int idx_end)
{
    const int rank = threadIdx.x;
    const int idx = blockIdx.x;
    float most = x[n * idx];
    float most_own = most;
    #pragma unroll 4
    for (int i_first = rank * 4; i_first < n; i_first += 512) {
        alignas(16) float x_four[4];
        *reinterpret_cast<float4 *>(&x_four[0]) = *reinterpret_cast<const float4 *>(&x[n * idx + i_first]);
        #pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            most_own = fmaxf(most_own, x_four[turn]);
        }
    }
    for (int far = 16; far > 0; far /= 2) most_own = fmaxf(most_own, __shfl_xor_sync(0xffffffff, most_own, far));
    __shared__ float most_parts[4];
    if (rank % 32 == 0) most_parts[rank / 32] = most_own;
    __syncthreads();
    most_own = most_parts[0];
    #pragma unroll
    for (int part = 1; part < 4; part++) most_own = fmaxf(most_own, most_parts[part]);
    most = fmaxf(most, most_own);
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 4
    for (int i_first_2 = rank * 4; i_first_2 < n; i_first_2 += 512) {
        alignas(16) float x_four_2[4];
        *reinterpret_cast<float4 *>(&x_four_2[0]) = *reinterpret_cast<const float4 *>(&x[n * idx + i_first_2]);
        #pragma unroll
        for (int turn_2 = 0; turn_2 < 4; turn_2++) {
            sum_own += expf(x_four_2[turn_2] - most);
        }
    }
    for (int far_2 = 16; far_2 > 0; far_2 /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far_2);
    __shared__ float sum_parts[4];
    if (rank % 32 == 0) sum_parts[rank / 32] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0];
    #pragma unroll
    for (int part_2 = 1; part_2 < 4; part_2++) sum_own = sum_own + sum_parts[part_2];
    sum = sum + sum_own;
    #pragma unroll 4
    for (int i_first_3 = rank * 4; i_first_3 < n; i_first_3 += 512) {
        alignas(16) float x_four_3[4];
        *reinterpret_cast<float4 *>(&x_four_3[0]) = *reinterpret_cast<const float4 *>(&x[n * idx + i_first_3]);
        alignas(16) float y_four[4];
        #pragma unroll
        for (int turn_3 = 0; turn_3 < 4; turn_3++) {
            y_four[turn_3] = expf(x_four_3[turn_3] - most) / sum;
        }
        *reinterpret_cast<float4 *>(&y[n * idx + i_first_3]) = *reinterpret_cast<float4 *>(&y_four[0]);
    }
}

__global__ void __launch_bounds__(128)
softmax_team(const float *x, float *y, int m, int n, int idx_end)
{
    const int rank = threadIdx.x;
    const int idx = blockIdx.x;
    float most = x[n * idx];
    float most_own = most;
    #pragma unroll 4
    for (int i = rank; i < n; i += 128) {
        most_own = fmaxf(most_own, x[n * idx + i]);
    }
    for (int far = 16; far > 0; far /= 2) most_own = fmaxf(most_own, __shfl_xor_sync(0xffffffff, most_own, far));
    __shared__ float most_parts[4];
    if (rank % 32 == 0) most_parts[rank / 32] = most_own;
    __syncthreads();
    most_own = most_parts[0];
    #pragma unroll
    for (int part = 1; part < 4; part++) most_own = fmaxf(most_own, most_parts[part]);
    most = fmaxf(most, most_own);
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 4
    for (int i = rank; i < n; i += 128) {
        sum_own += expf(x[n * idx + i] - most);
    }
    for (int far_2 = 16; far_2 > 0; far_2 /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far_2);
    __shared__ float sum_parts[4];
    if (rank % 32 == 0) sum_parts[rank / 32] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0];
    #pragma unroll
    for (int part_2 = 1; part_2 < 4; part_2++) sum_own = sum_own + sum_parts[part_2];
    sum = sum + sum_own;
    #pragma unroll 4
    for (int i = rank; i < n; i += 128) {
        y[n * idx + i] = expf(x[n * idx + i] - most) / sum;
    }
}

static inline cudaError_t softmax_try(dim3 grid, dim3 block, const float *x, float *y, int m, int n, cudaStream_t stream_)
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
        (double)n * (double)idx_end - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long x_first = 0;
    long long x_last = (long long)n * (long long)idx_end - (long long)n;
    if ((long long)n * (long long)idx_end - 1 > x_last) x_last = (long long)n * (long long)idx_end - 1;
    long long y_first = 0;
    long long y_last = (long long)n * (long long)idx_end - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)x % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)y % 16 == 0) {
        softmax_team_wide<<<dim3((unsigned)(idx_end), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            x, y, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        softmax_team<<<dim3((unsigned)(idx_end), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            x, y, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of softmax<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void softmax_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *x, float *y, int m, int n)
{
    if (softmax_try(grid, block, x, y, m, n, stream_) == cudaErrorNotSupported)
        softmax<<<grid, block, shared, stream_>>>(x, y, m, n);
}

}  // extern "C++"


extern "C" void run_softmax(const float *x, float *y, int m, int n, cudaStream_t stream) {
    softmax_launch((m + 255) / 256, 256, 0, stream, x, y, m, n);
}
