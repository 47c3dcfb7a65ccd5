// A bias for each column, and the Gaussian error unit in its form with a hyperbolic tangent.

#pragma warpwright naive sizes(m=8192, n=4096) outputs(y)
extern "C" __global__ void gelu(const float *x, const float *bias, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float v = x[idy * n + idx] + bias[idx];
    y[idy * n + idx] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}

extern "C++" {

// a thread takes four neighbouring points, and loads or stores their elements of `bias`, `x`, `y` together
__global__ void __launch_bounds__(128)
gelu_fours(const float *x, const float *bias, float *y, int m, int n, int idx_end, int idy_end)
{
    const int first = (blockIdx.x * 128 + threadIdx.x) * 4;
    if (first >= idx_end) return;
    const int idy = blockIdx.y;
    alignas(16) float x_four[4];
    *reinterpret_cast<float4 *>(&x_four[0]) = *reinterpret_cast<const float4 *>(&x[n * idy + first]);
    alignas(16) float bias_four[4];
    *reinterpret_cast<float4 *>(&bias_four[0]) = *reinterpret_cast<const float4 *>(&bias[first]);
    alignas(16) float y_four[4];
    #pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        float v = x_four[turn] + bias_four[turn];
        y_four[turn] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    }
    *reinterpret_cast<float4 *>(&y[n * idy + first]) = *reinterpret_cast<float4 *>(&y_four[0]);
}

static inline cudaError_t gelu_try(dim3 grid_, dim3 block_, const float *x, const float *bias, float *y, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid_.z * block_.z != 1) return cudaErrorNotSupported;
    if (m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid_.x * block_.x;
    if (idx_end > (long long)n) idx_end = (long long)n;
    long long idy_end = (long long)grid_.y * block_.y;
    if (idy_end > (long long)m) idy_end = (long long)m;
    if (idx_end <= 0 ||
        idx_end > 2147352576 ||
        idy_end <= 0 ||
        idy_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)idy_end - 1 > 2147483647.0 ||
        (double)n > 2147483647.0 ||
        (double)m > 2147483647.0 ||
        (double)n * (double)idy_end - (double)n > 2147483647.0 ||
        (double)n * (double)idy_end + (double)idx_end - (double)n - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long x_first = 0;
    long long x_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    long long bias_first = 0;
    long long bias_last = (long long)idx_end - 1;
    long long y_first = 0;
    long long y_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4) ||
        ((const char*)(bias + bias_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(bias + bias_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)x % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)bias % 16 == 0 &&
        (size_t)y % 16 == 0 &&
        ((long long)idx_end) % 4 == 0) {
        if (idy_end > 65535) return cudaErrorNotSupported;
        gelu_fours<<<dim3((unsigned)((idx_end + 511) / 512), (unsigned)(idy_end), (unsigned)(1)), 128, 0, stream_>>>(
            x, bias, y, m, n, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    return cudaErrorNotSupported;
}

// In place of gelu<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void gelu_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *x, const float *bias, float *y, int m, int n)
{
    if (gelu_try(grid_, block_, x, bias, y, m, n, stream_) == cudaErrorNotSupported)
        gelu<<<grid_, block_, shared, stream_>>>(x, bias, y, m, n);
}

}  // extern "C++"


extern "C" void run_gelu(const float *x, const float *bias, float *y, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    gelu_launch(grid, block, 0, stream, x, bias, y, m, n);
}
