// A product of a matrix with every row of an array of three dimensions, a place along each dimension of the grid.

#include <cuda_pipeline.h>

#pragma warpwright naive sizes(r=256, q=256, p=256) outputs(out)
extern "C" __global__ void doitgen(const float *a, const float *c4, float *out, int r, int q, int p) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int plane = blockIdx.z;
    if (column >= p || row >= q || plane >= r) return;
    float sum = 0.0f;
    for (int s = 0; s < p; s++) sum += a[(plane * q + row) * p + s] * c4[s * p + column];
    out[(plane * q + row) * p + column] = sum;
}

extern "C++" {

// block merge (section 3.5.1): a block of 256 threads computes 256 x 128 points
// thread merge (section 3.5.2): a thread computes 8 x 16 points, and what they share is loaded once; 4 x 1 of them are neighbours
// coalescing (section 3.3): 32 turns of the loop at a time, operands in shared memory, 4 turns written out
// prefetching (section 3.6): 2 parts in flight by cp.async, no registers for it
// `a`: 128 x 32 elements a part in shared memory
// `c4`: 32 x 256 elements a part in shared memory
__global__ void __launch_bounds__(256)
doitgen_tuned_wide(const float *a, const float *c4, float *out, int r, int q, int p, int column_end, int row_end, int plane_end)
{
    const int thread = threadIdx.x;
    // A warp is 8 x 4 threads.
    const int thread_x = thread / 32 % 4 * 8 + thread % 8;
    const int thread_y = thread / 128 * 4 + thread % 32 / 8;
    const int block_x = blockIdx.x * 256;
    const int block_y = blockIdx.y * 128;
    const int plane = blockIdx.z;
    float sum[16][8];
#pragma unroll
    for (int py = 0; py < 16; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0.0f;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*a_tile)[128][36] = reinterpret_cast<float (*)[128][36]>(shared + 0);
    float (*c4_tile)[32][256] = reinterpret_cast<float (*)[32][256]>(shared + 55296);
    const int parts = (p + 31) / 32;
    for (int part = 0; part < 2; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 1024; item += 256) {
                const int row_ = item / 8, column_ = item % 8 * 4;
                __pipeline_memcpy_async(&a_tile[part % 3][row_][column_], &a[q * p * plane + min(block_y + row_, row_end - 1) * p + min(part * 32 + column_, p - 4)], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 2048; item_ += 256) {
                const int row__ = item_ / 64, column__ = item_ % 64 * 4;
                __pipeline_memcpy_async(&c4_tile[part % 3][row__][column__], &c4[min(part * 32 + row__, p - 1) * p + min(block_x + column__, column_end - 4)], 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (part + 2 < parts) {
#pragma unroll
            for (int item = thread; item < 1024; item += 256) {
                const int row_ = item / 8, column_ = item % 8 * 4;
                __pipeline_memcpy_async(&a_tile[(part + 2) % 3][row_][column_], &a[q * p * plane + min(block_y + row_, row_end - 1) * p + min((part + 2) * 32 + column_, p - 4)], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 2048; item_ += 256) {
                const int row__ = item_ / 64, column__ = item_ % 64 * 4;
                __pipeline_memcpy_async(&c4_tile[(part + 2) % 3][row__][column__], &c4[min((part + 2) * 32 + row__, p - 1) * p + min(block_x + column__, column_end - 4)], 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 3;
        const int left = min(32, p - part * 32);
        int s_in = 0;
        for (; s_in + 4 <= left; s_in += 4) {
            __align__(16) float a_part[16][4];
#pragma unroll
            for (int py = 0; py < 16; ++py) {
                *reinterpret_cast<float4*>(&a_part[py][0]) = *reinterpret_cast<const float4*>(&a_tile[buffer][py * 8 + thread_y][s_in]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                __align__(16) float c4_part[2][4];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
                    *reinterpret_cast<float4*>(&c4_part[px / 4][0]) = *reinterpret_cast<const float4*>(&c4_tile[buffer][(s_in + turn)][px * 32 + thread_x * 4]);
                }
#pragma unroll
                for (int py = 0; py < 16; ++py) {
#pragma unroll
                    for (int px = 0; px < 8; ++px) {
                        sum[py][px] += a_part[py][turn] * c4_part[px / 4][px % 4];
                    }
                }
            }
        }
        for (; s_in < left; ++s_in) {
            float a_part_[16];
#pragma unroll
            for (int py = 0; py < 16; ++py) {
                a_part_[py] = a_tile[buffer][py * 8 + thread_y][s_in];
            }
            __align__(16) float c4_part_[2][4];
#pragma unroll
            for (int px = 0; px < 8; px += 4) {
                *reinterpret_cast<float4*>(&c4_part_[px / 4][0]) = *reinterpret_cast<const float4*>(&c4_tile[buffer][s_in][px * 32 + thread_x * 4]);
            }
#pragma unroll
            for (int py = 0; py < 16; ++py) {
#pragma unroll
                for (int px = 0; px < 8; ++px) {
                    sum[py][px] += a_part_[py] * c4_part_[px / 4][px % 4];
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 16; ++py) {
        const int row = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int column = block_x + px / 4 * 128 + thread_x * 4 + px % 4;
            if (column < column_end && row < row_end) {
                out[q * p * plane + p * row + column] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(256)
doitgen_tuned(const float *a, const float *c4, float *out, int r, int q, int p, int column_end, int row_end, int plane_end)
{
    const int thread = threadIdx.x;
    // A warp is 8 x 4 threads.
    const int thread_x = thread / 32 % 4 * 8 + thread % 8;
    const int thread_y = thread / 128 * 4 + thread % 32 / 8;
    const int block_x = blockIdx.x * 256;
    const int block_y = blockIdx.y * 128;
    const int plane = blockIdx.z;
    float sum[16][8];
#pragma unroll
    for (int py = 0; py < 16; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0.0f;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*a_tile)[128][36] = reinterpret_cast<float (*)[128][36]>(shared + 0);
    float (*c4_tile)[32][256] = reinterpret_cast<float (*)[32][256]>(shared + 55296);
    const int parts = (p + 31) / 32;
    for (int part = 0; part < 2; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 4096; item += 256) {
                const int row_ = item / 32, column_ = item % 32;
                __pipeline_memcpy_async(&a_tile[part % 3][row_][column_], &a[q * p * plane + min(block_y + row_, row_end - 1) * p + min(part * 32 + column_, p - 1)], 4);
            }
#pragma unroll
            for (int item_ = thread; item_ < 8192; item_ += 256) {
                const int row__ = item_ / 256, column__ = item_ % 256;
                __pipeline_memcpy_async(&c4_tile[part % 3][row__][column__], &c4[min(part * 32 + row__, p - 1) * p + min(block_x + column__, column_end - 1)], 4);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (part + 2 < parts) {
#pragma unroll
            for (int item = thread; item < 4096; item += 256) {
                const int row_ = item / 32, column_ = item % 32;
                __pipeline_memcpy_async(&a_tile[(part + 2) % 3][row_][column_], &a[q * p * plane + min(block_y + row_, row_end - 1) * p + min((part + 2) * 32 + column_, p - 1)], 4);
            }
#pragma unroll
            for (int item_ = thread; item_ < 8192; item_ += 256) {
                const int row__ = item_ / 256, column__ = item_ % 256;
                __pipeline_memcpy_async(&c4_tile[(part + 2) % 3][row__][column__], &c4[min((part + 2) * 32 + row__, p - 1) * p + min(block_x + column__, column_end - 1)], 4);
            }
        }
        __pipeline_commit();
        const int buffer = part % 3;
        const int left = min(32, p - part * 32);
        int s_in = 0;
        for (; s_in + 4 <= left; s_in += 4) {
            __align__(16) float a_part[16][4];
#pragma unroll
            for (int py = 0; py < 16; ++py) {
                *reinterpret_cast<float4*>(&a_part[py][0]) = *reinterpret_cast<const float4*>(&a_tile[buffer][py * 8 + thread_y][s_in]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                __align__(16) float c4_part[2][4];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
                    *reinterpret_cast<float4*>(&c4_part[px / 4][0]) = *reinterpret_cast<const float4*>(&c4_tile[buffer][(s_in + turn)][px * 32 + thread_x * 4]);
                }
#pragma unroll
                for (int py = 0; py < 16; ++py) {
#pragma unroll
                    for (int px = 0; px < 8; ++px) {
                        sum[py][px] += a_part[py][turn] * c4_part[px / 4][px % 4];
                    }
                }
            }
        }
        for (; s_in < left; ++s_in) {
            float a_part_[16];
#pragma unroll
            for (int py = 0; py < 16; ++py) {
                a_part_[py] = a_tile[buffer][py * 8 + thread_y][s_in];
            }
            __align__(16) float c4_part_[2][4];
#pragma unroll
            for (int px = 0; px < 8; px += 4) {
                *reinterpret_cast<float4*>(&c4_part_[px / 4][0]) = *reinterpret_cast<const float4*>(&c4_tile[buffer][s_in][px * 32 + thread_x * 4]);
            }
#pragma unroll
            for (int py = 0; py < 16; ++py) {
#pragma unroll
                for (int px = 0; px < 8; ++px) {
                    sum[py][px] += a_part_[py] * c4_part_[px / 4][px % 4];
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 16; ++py) {
        const int row = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int column = block_x + px / 4 * 128 + thread_x * 4 + px % 4;
            if (column < column_end && row < row_end) {
                out[q * p * plane + p * row + column] = sum[py][px];
            }
        }
    }
}

static inline cudaError_t doitgen_try(dim3 grid_, dim3 block_, const float *a, const float *c4, float *out, int r, int q, int p, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (block_.z != 1) return cudaErrorNotSupported;
    if (r < 0 ||
        q < 0 ||
        p < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long column_end = (long long)grid_.x * block_.x;
    if (column_end > (long long)p) column_end = (long long)p;
    long long row_end = (long long)grid_.y * block_.y;
    if (row_end > (long long)q) row_end = (long long)q;
    long long plane_end = (long long)grid_.z;
    if (plane_end > (long long)r) plane_end = (long long)r;
    if (column_end <= 0 ||
        column_end > 2147352576 ||
        row_end <= 0 ||
        row_end > 2147352576 ||
        plane_end <= 0 ||
        plane_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)column_end - 1 > 2147483647.0 ||
        (double)row_end - 1 > 2147483647.0 ||
        (double)p > 2147483647.0 ||
        (double)q > 2147483647.0 ||
        (double)r > 2147483647.0 ||
        (double)p * (double)p - (double)p > 2147483647.0 ||
        (double)p * (double)p + (double)column_end - (double)p - 1 > 2147483647.0 ||
        (double)q * (double)p * (double)plane_end + (double)p * (double)row_end - (double)q * (double)p - 1 > 2147483647.0 ||
        (double)q * (double)p * (double)plane_end + (double)p * (double)row_end + (double)column_end - (double)q * (double)p - (double)p - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long a_first = 0;
    long long a_last = (long long)q * (long long)p * (long long)plane_end + (long long)p * (long long)row_end - (long long)q * (long long)p - 1;
    long long c4_first = 0;
    long long c4_last = (long long)p * (long long)p + (long long)column_end - (long long)p - 1;
    long long out_first = 0;
    long long out_last = (long long)q * (long long)p * (long long)plane_end + (long long)p * (long long)row_end + (long long)column_end - (long long)q * (long long)p - (long long)p - 1;
    if (((const char*)(a + a_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(a + a_last) + 4) ||
        ((const char*)(c4 + c4_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(c4 + c4_last) + 4)) return cudaErrorNotSupported;
    if (((long long)q * (long long)p) % 4 == 0 &&
        ((long long)p) % 4 == 0 &&
        (size_t)a % 16 == 0 &&
        ((long long)column_end) % 4 == 0 &&
        (size_t)c4 % 16 == 0) {
        if ((row_end + 127) / 128 > 65535) return cudaErrorNotSupported;
        if (plane_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(doitgen_tuned_wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 153600) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        doitgen_tuned_wide<<<dim3((unsigned)((column_end + 255) / 256), (unsigned)((row_end + 127) / 128), (unsigned)(plane_end)), 256, 153600, stream_>>>(
            a, c4, out, r, q, p, (int)column_end, (int)row_end, (int)plane_end);
        return cudaPeekAtLastError();
    }
    {
        if ((row_end + 127) / 128 > 65535) return cudaErrorNotSupported;
        if (plane_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(doitgen_tuned, cudaFuncAttributeMaxDynamicSharedMemorySize, 153600) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        doitgen_tuned<<<dim3((unsigned)((column_end + 255) / 256), (unsigned)((row_end + 127) / 128), (unsigned)(plane_end)), 256, 153600, stream_>>>(
            a, c4, out, r, q, p, (int)column_end, (int)row_end, (int)plane_end);
        return cudaPeekAtLastError();
    }
}

// In place of doitgen<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void doitgen_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *a, const float *c4, float *out, int r, int q, int p)
{
    if (doitgen_try(grid_, block_, a, c4, out, r, q, p, stream_) == cudaErrorNotSupported)
        doitgen<<<grid_, block_, shared, stream_>>>(a, c4, out, r, q, p);
}

}  // extern "C++"


extern "C" void run_doitgen(const float *a, const float *c4, float *out, int r, int q, int p, cudaStream_t stream) {
    dim3 block(32, 8), grid((p + 31) / 32, (q + 7) / 8, r);
    doitgen_launch(grid, block, 0, stream, a, c4, out, r, q, p);
}
