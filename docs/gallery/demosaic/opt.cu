// Colours from the raw picture of a sensor behind a Bayer filter, by averages of neighbours (Table 1 of
// Yang et al., PLDI 2010): red where row and column are even, blue where both are odd. The raw picture
// has a margin of one.

#pragma warpwright naive sizes(m=2048, n=2048) outputs(red, green, blue)
extern "C" __global__ void demosaic(const float *raw, float *red, float *green, float *blue, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    int width = n + 2;
    int p = (idy + 1) * width + idx + 1;
    float own = raw[p];
    float beside = 0.5f * (raw[p - 1] + raw[p + 1]);
    float above = 0.5f * (raw[p - width] + raw[p + width]);
    float cross = 0.5f * (beside + above);
    float corners = 0.25f * (raw[p - width - 1] + raw[p - width + 1] + raw[p + width - 1] + raw[p + width + 1]);
    float r, g, b;
    if (idy % 2 == 0) {
        if (idx % 2 == 0) {
            r = own; g = cross; b = corners;
        } else {
            r = beside; g = own; b = above;
        }
    } else {
        if (idx % 2 == 0) {
            r = above; g = own; b = beside;
        } else {
            r = corners; g = cross; b = own;
        }
    }
    red[idy * n + idx] = r;
    green[idy * n + idx] = g;
    blue[idy * n + idx] = b;
}

extern "C++" {

// a thread takes four neighbouring points, and loads or stores their elements of `blue`, `green`, `red` together
__global__ void __launch_bounds__(128)
demosaic_fours(const float *raw, float *red, float *green, float *blue, int m, int n, int idx_end, int idy_end)
{
    const int first = (blockIdx.x * 128 + threadIdx.x) * 4;
    if (first >= idx_end) return;
    const int idy = blockIdx.y;
    alignas(16) float red_four[4];
    alignas(16) float green_four[4];
    alignas(16) float blue_four[4];
    #pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        const int idx = first + turn;
        float own = raw[n * idy + n + idx + 2 * idy + 3];
        float beside = 0.5f * (raw[n * idy + n + idx + 2 * idy + 2] + raw[n * idy + n + idx + 2 * idy + 4]);
        float above = 0.5f * (raw[n * idy + idx + 2 * idy + 1] + raw[n * idy + 2 * n + idx + 2 * idy + 5]);
        float cross = 0.5f * (beside + above);
        float corners = 0.25f * (raw[n * idy + idx + 2 * idy] + raw[n * idy + idx + 2 * idy + 2] + raw[n * idy + 2 * n + idx + 2 * idy + 4] + raw[n * idy + 2 * n + idx + 2 * idy + 6]);
        float r;
        float g;
        float b;
        if (idy % 2 == 0) {
            if (idx % 2 == 0) {
                r = own;
                g = cross;
                b = corners;
            }
            else {
                r = beside;
                g = own;
                b = above;
            }
        }
        else {
            if (idx % 2 == 0) {
                r = above;
                g = own;
                b = beside;
            }
            else {
                r = corners;
                g = cross;
                b = own;
            }
        }
        red_four[turn] = r;
        green_four[turn] = g;
        blue_four[turn] = b;
    }
    *reinterpret_cast<float4 *>(&red[n * idy + first]) = *reinterpret_cast<float4 *>(&red_four[0]);
    *reinterpret_cast<float4 *>(&green[n * idy + first]) = *reinterpret_cast<float4 *>(&green_four[0]);
    *reinterpret_cast<float4 *>(&blue[n * idy + first]) = *reinterpret_cast<float4 *>(&blue_four[0]);
}

static inline cudaError_t demosaic_try(dim3 grid_, dim3 block_, const float *raw, float *red, float *green, float *blue, int m, int n, cudaStream_t stream_)
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
    if ((double)m > 2147483647.0 ||
        (double)n * (double)idy_end + (double)n + (double)idx_end + 2 * (double)idy_end + 3 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long raw_first = (long long)n + 3;
    if ((long long)n + 2 < raw_first) raw_first = (long long)n + 2;
    if ((long long)n + 4 < raw_first) raw_first = (long long)n + 4;
    if (1 < raw_first) raw_first = 1;
    if (2 * (long long)n + 5 < raw_first) raw_first = 2 * (long long)n + 5;
    if (0 < raw_first) raw_first = 0;
    if (2 < raw_first) raw_first = 2;
    if (2 * (long long)n + 4 < raw_first) raw_first = 2 * (long long)n + 4;
    if (2 * (long long)n + 6 < raw_first) raw_first = 2 * (long long)n + 6;
    long long raw_last = (long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end;
    if ((long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - 1 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - 1;
    if ((long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end + 1 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end + 1;
    if ((long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - (long long)n - 2 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - (long long)n - 2;
    if ((long long)n * (long long)idy_end + (long long)n + (long long)idx_end + 2 * (long long)idy_end + 2 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)n + (long long)idx_end + 2 * (long long)idy_end + 2;
    if ((long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - (long long)n - 3 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - (long long)n - 3;
    if ((long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - (long long)n - 1 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)idx_end + 2 * (long long)idy_end - (long long)n - 1;
    if ((long long)n * (long long)idy_end + (long long)n + (long long)idx_end + 2 * (long long)idy_end + 1 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)n + (long long)idx_end + 2 * (long long)idy_end + 1;
    if ((long long)n * (long long)idy_end + (long long)n + (long long)idx_end + 2 * (long long)idy_end + 3 > raw_last) raw_last = (long long)n * (long long)idy_end + (long long)n + (long long)idx_end + 2 * (long long)idy_end + 3;
    long long red_first = 0;
    long long red_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    long long green_first = 0;
    long long green_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    long long blue_first = 0;
    long long blue_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    if (((const char*)(raw + raw_first) < (const char*)(red + red_last) + 4 && (const char*)(red + red_first) < (const char*)(raw + raw_last) + 4) ||
        ((const char*)(raw + raw_first) < (const char*)(green + green_last) + 4 && (const char*)(green + green_first) < (const char*)(raw + raw_last) + 4) ||
        ((const char*)(raw + raw_first) < (const char*)(blue + blue_last) + 4 && (const char*)(blue + blue_first) < (const char*)(raw + raw_last) + 4) ||
        ((const char*)(red + red_first) < (const char*)(green + green_last) + 4 && (const char*)(green + green_first) < (const char*)(red + red_last) + 4) ||
        ((const char*)(red + red_first) < (const char*)(blue + blue_last) + 4 && (const char*)(blue + blue_first) < (const char*)(red + red_last) + 4) ||
        ((const char*)(green + green_first) < (const char*)(blue + blue_last) + 4 && (const char*)(blue + blue_first) < (const char*)(green + green_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)red % 16 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)green % 16 == 0 &&
        (size_t)blue % 16 == 0 &&
        ((long long)idx_end) % 4 == 0) {
        if (idy_end > 65535) return cudaErrorNotSupported;
        demosaic_fours<<<dim3((unsigned)((idx_end + 511) / 512), (unsigned)(idy_end), (unsigned)(1)), 128, 0, stream_>>>(
            raw, red, green, blue, m, n, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    return cudaErrorNotSupported;
}

// In place of demosaic<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void demosaic_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *raw, float *red, float *green, float *blue, int m, int n)
{
    if (demosaic_try(grid_, block_, raw, red, green, blue, m, n, stream_) == cudaErrorNotSupported)
        demosaic<<<grid_, block_, shared, stream_>>>(raw, red, green, blue, m, n);
}

}  // extern "C++"


extern "C" void run_demosaic(const float *raw, float *red, float *green, float *blue, int m, int n,
                             cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    demosaic_launch(grid, block, 0, stream, raw, red, green, blue, m, n);
}
