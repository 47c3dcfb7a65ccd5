// The brightness of a picture with three bytes a pixel, as real numbers.

#pragma warpwright naive sizes(n=33554432) outputs(out)
extern "C" __global__ void grey(const unsigned char *picture, float *out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    out[idx] = 0.299f * picture[3 * idx] + 0.587f * picture[3 * idx + 1] + 0.114f * picture[3 * idx + 2];
}

extern "C++" {

// a thread takes four neighbouring points, and loads or stores their elements of `out`, `picture` together
__global__ void __launch_bounds__(128)
grey_fours(const unsigned char *picture, float *out, int n, int idx_end)
{
    const int first = (blockIdx.x * 128 + threadIdx.x) * 4;
    if (first >= idx_end) return;
    alignas(16) unsigned char picture_four[12];
    *reinterpret_cast<int *>(&picture_four[0]) = *reinterpret_cast<const int *>(&picture[3 * first]);
    *reinterpret_cast<int *>(&picture_four[4]) = *reinterpret_cast<const int *>(&picture[3 * first + 4]);
    *reinterpret_cast<int *>(&picture_four[8]) = *reinterpret_cast<const int *>(&picture[3 * first + 8]);
    alignas(16) float out_four[4];
    #pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        out_four[turn] = 0.299f * picture_four[3 * turn] + 0.587f * picture_four[3 * turn + 1] + 0.114f * picture_four[3 * turn + 2];
    }
    *reinterpret_cast<float4 *>(&out[first]) = *reinterpret_cast<float4 *>(&out_four[0]);
}

static inline cudaError_t grey_try(dim3 grid, dim3 block, const unsigned char *picture, float *out, int n, cudaStream_t stream_)
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
    if ((double)n > 2147483647.0 ||
        3 * (double)idx_end - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long picture_first = 0;
    if (1 < picture_first) picture_first = 1;
    if (2 < picture_first) picture_first = 2;
    long long picture_last = 3 * (long long)idx_end - 3;
    if (3 * (long long)idx_end - 2 > picture_last) picture_last = 3 * (long long)idx_end - 2;
    if (3 * (long long)idx_end - 1 > picture_last) picture_last = 3 * (long long)idx_end - 1;
    long long out_first = 0;
    long long out_last = (long long)idx_end - 1;
    if (((const char*)(picture + picture_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(picture + picture_last) + 1)) return cudaErrorNotSupported;
    if ((size_t)picture % 4 == 0 &&
        (size_t)out % 16 == 0 &&
        ((long long)idx_end) % 4 == 0) {
        grey_fours<<<dim3((unsigned)((idx_end + 511) / 512), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            picture, out, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    return cudaErrorNotSupported;
}

// In place of grey<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void grey_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const unsigned char *picture, float *out, int n)
{
    if (grey_try(grid, block, picture, out, n, stream_) == cudaErrorNotSupported)
        grey<<<grid, block, shared, stream_>>>(picture, out, n);
}

}  // extern "C++"


extern "C" void run_grey(const unsigned char *picture, float *out, int n, cudaStream_t stream) {
    grey_launch((n + 255) / 256, 256, 0, stream, picture, out, n);
}
