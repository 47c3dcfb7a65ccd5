// The outer product of two vectors (Table 1 of Yang et al., PLDI 2010).

#pragma warpwright naive sizes(m=4096, n=4096) outputs(c)
extern "C" __global__ void vv(const float *x, const float *y, float *c, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx < n && idy < m) c[idy * n + idx] = x[idy] * y[idx];
}

extern "C++" {

// a thread takes four neighbouring points, and loads or stores their elements of `c`, `y` together
__global__ void __launch_bounds__(128)
vv_fours(const float *x, const float *y, float *c, int m, int n, int idx_end, int idy_end)
{
    const int first = (blockIdx.x * 128 + threadIdx.x) * 4;
    if (first >= idx_end) return;
    alignas(16) float y_four[4];
    *reinterpret_cast<float4 *>(&y_four[0]) = *reinterpret_cast<const float4 *>(&y[first]);
    #pragma unroll
    for (int row = 0; row < 2; row++) {
        const int idy = blockIdx.y * 2 + row;
        if (idy >= idy_end) return;
        alignas(16) float c_four[4];
        #pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            c_four[turn] = x[idy] * y_four[turn];
        }
        *reinterpret_cast<float4 *>(&c[n * idy + first]) = *reinterpret_cast<float4 *>(&c_four[0]);
    }
}

static inline cudaError_t vv_try(dim3 grid_, dim3 block_, const float *x, const float *y, float *c, int m, int n, cudaStream_t stream_)
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
    long long x_last = (long long)idy_end - 1;
    long long y_first = 0;
    long long y_last = (long long)idx_end - 1;
    long long c_first = 0;
    long long c_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    if (((const char*)(x + x_first) < (const char*)(c + c_last) + 4 && (const char*)(c + c_first) < (const char*)(x + x_last) + 4) ||
        ((const char*)(y + y_first) < (const char*)(c + c_last) + 4 && (const char*)(c + c_first) < (const char*)(y + y_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)y % 16 == 0 &&
        (size_t)c % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        ((long long)idx_end) % 4 == 0) {
        if ((idy_end + 1) / 2 > 65535) return cudaErrorNotSupported;
        vv_fours<<<dim3((unsigned)((idx_end + 511) / 512), (unsigned)((idy_end + 1) / 2), (unsigned)(1)), 128, 0, stream_>>>(
            x, y, c, m, n, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    return cudaErrorNotSupported;
}

// In place of vv<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void vv_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *x, const float *y, float *c, int m, int n)
{
    if (vv_try(grid_, block_, x, y, c, m, n, stream_) == cudaErrorNotSupported)
        vv<<<grid_, block_, shared, stream_>>>(x, y, c, m, n);
}

}  // extern "C++"


extern "C" void run_vv(const float *x, const float *y, float *c, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    vv_launch(grid, block, 0, stream, x, y, c, m, n);
}
