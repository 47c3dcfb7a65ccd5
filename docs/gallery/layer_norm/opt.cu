// Every row less its mean, over its deviation, with a scale and a shift for each column: a thread takes one
// row.

#pragma warpwright naive sizes(m=8192, n=2048) outputs(y) reassociate
extern "C" __global__ void layer_norm(const float *x, const float *scale, const float *shift, float *y, int m, int n,
                                      float epsilon) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= m) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[idx * n + i];
    float mean = sum / n;
    float squares = 0;
    for (int i = 0; i < n; i++) {
        float d = x[idx * n + i] - mean;
        squares += d * d;
    }
    float inverse = 1.0f / sqrtf(squares / n + epsilon);
    for (int i = 0; i < n; i++) y[idx * n + i] = (x[idx * n + i] - mean) * inverse * scale[i] + shift[i];
}

extern "C++" {

// 128 threads share the turns of a point, so that neighbours load neighbouring elements; `sum`, `squares` is combined at the end
__global__ void __launch_bounds__(128)
layer_norm_team_wide(const float *x, const float *scale, const float *shift, float *y, int m, int n, float epsilon, int idx_end)
{
    const int rank = threadIdx.x;
    const int idx = blockIdx.x;
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 4
    for (int i_first = rank * 4; i_first < n; i_first += 512) {
        alignas(16) float x_four[4];
        *reinterpret_cast<float4 *>(&x_four[0]) = *reinterpret_cast<const float4 *>(&x[n * idx + i_first]);
        #pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            sum_own += x_four[turn];
        }
    }
    for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
    __shared__ float sum_parts[4];
    if (rank % 32 == 0) sum_parts[rank / 32] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0];
    #pragma unroll
    for (int part = 1; part < 4; part++) sum_own = sum_own + sum_parts[part];
    sum = sum + sum_own;
    float mean = sum / n;
    float squares = 0;
    float squares_own = 0;
    #pragma unroll 4
    for (int i_first_2 = rank * 4; i_first_2 < n; i_first_2 += 512) {
        alignas(16) float x_four_2[4];
        *reinterpret_cast<float4 *>(&x_four_2[0]) = *reinterpret_cast<const float4 *>(&x[n * idx + i_first_2]);
        #pragma unroll
        for (int turn_2 = 0; turn_2 < 4; turn_2++) {
            float d = x_four_2[turn_2] - mean;
            squares_own += d * d;
        }
    }
    for (int far_2 = 16; far_2 > 0; far_2 /= 2) squares_own = squares_own + __shfl_xor_sync(0xffffffff, squares_own, far_2);
    __shared__ float squares_parts[4];
    if (rank % 32 == 0) squares_parts[rank / 32] = squares_own;
    __syncthreads();
    squares_own = squares_parts[0];
    #pragma unroll
    for (int part_2 = 1; part_2 < 4; part_2++) squares_own = squares_own + squares_parts[part_2];
    squares = squares + squares_own;
    float inverse = 1.0f / sqrtf(squares / n + epsilon);
    #pragma unroll 4
    for (int i_first_3 = rank * 4; i_first_3 < n; i_first_3 += 512) {
        alignas(16) float x_four_3[4];
        *reinterpret_cast<float4 *>(&x_four_3[0]) = *reinterpret_cast<const float4 *>(&x[n * idx + i_first_3]);
        alignas(16) float scale_four[4];
        *reinterpret_cast<float4 *>(&scale_four[0]) = *reinterpret_cast<const float4 *>(&scale[i_first_3]);
        alignas(16) float shift_four[4];
        *reinterpret_cast<float4 *>(&shift_four[0]) = *reinterpret_cast<const float4 *>(&shift[i_first_3]);
        alignas(16) float y_four[4];
        #pragma unroll
        for (int turn_3 = 0; turn_3 < 4; turn_3++) {
            y_four[turn_3] = (x_four_3[turn_3] - mean) * inverse * scale_four[turn_3] + shift_four[turn_3];
        }
        *reinterpret_cast<float4 *>(&y[n * idx + i_first_3]) = *reinterpret_cast<float4 *>(&y_four[0]);
    }
}

__global__ void __launch_bounds__(128)
layer_norm_team(const float *x, const float *scale, const float *shift, float *y, int m, int n, float epsilon, int idx_end)
{
    const int rank = threadIdx.x;
    const int idx = blockIdx.x;
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 4
    for (int i = rank; i < n; i += 128) {
        sum_own += x[n * idx + i];
    }
    for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
    __shared__ float sum_parts[4];
    if (rank % 32 == 0) sum_parts[rank / 32] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0];
    #pragma unroll
    for (int part = 1; part < 4; part++) sum_own = sum_own + sum_parts[part];
    sum = sum + sum_own;
    float mean = sum / n;
    float squares = 0;
    float squares_own = 0;
    #pragma unroll 4
    for (int i = rank; i < n; i += 128) {
        float d = x[n * idx + i] - mean;
        squares_own += d * d;
    }
    for (int far_2 = 16; far_2 > 0; far_2 /= 2) squares_own = squares_own + __shfl_xor_sync(0xffffffff, squares_own, far_2);
    __shared__ float squares_parts[4];
    if (rank % 32 == 0) squares_parts[rank / 32] = squares_own;
    __syncthreads();
    squares_own = squares_parts[0];
    #pragma unroll
    for (int part_2 = 1; part_2 < 4; part_2++) squares_own = squares_own + squares_parts[part_2];
    squares = squares + squares_own;
    float inverse = 1.0f / sqrtf(squares / n + epsilon);
    #pragma unroll 4
    for (int i = rank; i < n; i += 128) {
        y[n * idx + i] = (x[n * idx + i] - mean) * inverse * scale[i] + shift[i];
    }
}

static inline cudaError_t layer_norm_try(dim3 grid, dim3 block, const float *x, const float *scale, const float *shift, float *y, int m, int n, float epsilon, cudaStream_t stream_)
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
    long long x_first = 0;
    long long x_last = (long long)n * (long long)idx_end - 1;
    long long scale_first = 0;
    long long scale_last = (long long)n - 1;
    long long shift_first = 0;
    long long shift_last = (long long)n - 1;
    long long y_first = 0;
    long long y_last = (long long)n * (long long)idx_end - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4) ||
        ((const char*)(scale + scale_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(scale + scale_last) + 4) ||
        ((const char*)(shift + shift_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(shift + shift_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)x % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)scale % 16 == 0 &&
        (size_t)shift % 16 == 0 &&
        (size_t)y % 16 == 0) {
        layer_norm_team_wide<<<dim3((unsigned)(idx_end), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            x, scale, shift, y, m, n, epsilon, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        layer_norm_team<<<dim3((unsigned)(idx_end), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            x, scale, shift, y, m, n, epsilon, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of layer_norm<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void layer_norm_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *x, const float *scale, const float *shift, float *y, int m, int n, float epsilon)
{
    if (layer_norm_try(grid, block, x, scale, shift, y, m, n, epsilon, stream_) == cudaErrorNotSupported)
        layer_norm<<<grid, block, shared, stream_>>>(x, scale, shift, y, m, n, epsilon);
}

}  // extern "C++"


extern "C" void run_layer_norm(const float *x, const float *scale, const float *shift, float *y, int m, int n,
                               float epsilon, cudaStream_t stream) {
    layer_norm_launch((m + 255) / 256, 256, 0, stream, x, scale, shift, y, m, n, epsilon);
}
