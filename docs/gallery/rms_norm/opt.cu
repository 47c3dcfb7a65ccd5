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

extern "C++" {

// 256 threads share the turns of a point, so that neighbours load neighbouring elements; `squares` is combined at the end
__global__ void __launch_bounds__(256)
rms_norm_team_wide(const float *x, const float *scale, float *y, int m, int n, int row_end)
{
    const int rank = threadIdx.x;
    const int row = blockIdx.x;
    float squares = 0;
    float squares_own = 0;
    #pragma unroll 4
    for (int i_first = rank * 4; i_first < n; i_first += 1024) {
        alignas(16) float x_four[4];
        *reinterpret_cast<float4 *>(&x_four[0]) = *reinterpret_cast<const float4 *>(&x[n * row + i_first]);
        #pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            squares_own += x_four[turn] * x_four[turn];
        }
    }
    for (int far = 16; far > 0; far /= 2) squares_own = squares_own + __shfl_xor_sync(0xffffffff, squares_own, far);
    __shared__ float squares_parts[8];
    if (rank % 32 == 0) squares_parts[rank / 32] = squares_own;
    __syncthreads();
    squares_own = squares_parts[0];
    #pragma unroll
    for (int part = 1; part < 8; part++) squares_own = squares_own + squares_parts[part];
    squares = squares + squares_own;
    float inverse = rsqrtf(squares / n + 1e-6f);
    #pragma unroll 4
    for (int i_first_2 = rank * 4; i_first_2 < n; i_first_2 += 1024) {
        alignas(16) float x_four_2[4];
        *reinterpret_cast<float4 *>(&x_four_2[0]) = *reinterpret_cast<const float4 *>(&x[n * row + i_first_2]);
        alignas(16) float scale_four[4];
        *reinterpret_cast<float4 *>(&scale_four[0]) = *reinterpret_cast<const float4 *>(&scale[i_first_2]);
        alignas(16) float y_four[4];
        #pragma unroll
        for (int turn_2 = 0; turn_2 < 4; turn_2++) {
            y_four[turn_2] = x_four_2[turn_2] * inverse * scale_four[turn_2];
        }
        *reinterpret_cast<float4 *>(&y[n * row + i_first_2]) = *reinterpret_cast<float4 *>(&y_four[0]);
    }
}

__global__ void __launch_bounds__(256)
rms_norm_team(const float *x, const float *scale, float *y, int m, int n, int row_end)
{
    const int rank = threadIdx.x;
    const int row = blockIdx.x;
    float squares = 0;
    float squares_own = 0;
    #pragma unroll 4
    for (int i = rank; i < n; i += 256) {
        squares_own += x[n * row + i] * x[n * row + i];
    }
    for (int far = 16; far > 0; far /= 2) squares_own = squares_own + __shfl_xor_sync(0xffffffff, squares_own, far);
    __shared__ float squares_parts[8];
    if (rank % 32 == 0) squares_parts[rank / 32] = squares_own;
    __syncthreads();
    squares_own = squares_parts[0];
    #pragma unroll
    for (int part = 1; part < 8; part++) squares_own = squares_own + squares_parts[part];
    squares = squares + squares_own;
    float inverse = rsqrtf(squares / n + 1e-6f);
    #pragma unroll 4
    for (int i = rank; i < n; i += 256) {
        y[n * row + i] = x[n * row + i] * inverse * scale[i];
    }
}

static inline cudaError_t rms_norm_try(dim3 grid, dim3 block, const float *x, const float *scale, float *y, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long row_end = (long long)grid.x * block.x;
    if (row_end > (long long)m) row_end = (long long)m;
    if (row_end <= 0 ||
        row_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)row_end - 1 > 2147483647.0 ||
        (double)m > 2147483647.0 ||
        (double)n * (double)row_end - (double)n > 2147483647.0 ||
        (double)n * (double)row_end - 1 > 2147483647.0 ||
        (double)n - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long x_first = 0;
    long long x_last = (long long)n * (long long)row_end - 1;
    long long scale_first = 0;
    long long scale_last = (long long)n - 1;
    long long y_first = 0;
    long long y_last = (long long)n * (long long)row_end - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4) ||
        ((const char*)(scale + scale_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(scale + scale_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)x % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)scale % 16 == 0 &&
        (size_t)y % 16 == 0) {
        rms_norm_team_wide<<<dim3((unsigned)(row_end), (unsigned)(1), (unsigned)(1)), 256, 0, stream_>>>(
            x, scale, y, m, n, (int)row_end);
        return cudaPeekAtLastError();
    }
    {
        rms_norm_team<<<dim3((unsigned)(row_end), (unsigned)(1), (unsigned)(1)), 256, 0, stream_>>>(
            x, scale, y, m, n, (int)row_end);
        return cudaPeekAtLastError();
    }
}

// In place of rms_norm<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void rms_norm_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *x, const float *scale, float *y, int m, int n)
{
    if (rms_norm_try(grid, block, x, scale, y, m, n, stream_) == cudaErrorNotSupported)
        rms_norm<<<grid, block, shared, stream_>>>(x, scale, y, m, n);
}

}  // extern "C++"


extern "C" void run_rms_norm(const float *x, const float *scale, float *y, int m, int n, cudaStream_t stream) {
    rms_norm_launch((m + 255) / 256, 256, 0, stream, x, scale, y, m, n);
}
