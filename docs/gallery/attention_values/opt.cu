// What one head of attention gives: the weights of every query times the values.

#include <cuda_pipeline.h>

#pragma warpwright naive sizes(n=4096, d=64) outputs(o)
extern "C" __global__ void attention_values(const float *p, const float *v, float *o, int n, int d) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= d || idy >= n) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += p[idy * n + i] * v[i * d + idx];
    o[idy * d + idx] = sum;
}

extern "C++" {

// block merge: a block of 128 threads computes 64 x 32 points
// thread merge: a thread computes 4 x 4 points, and what they share is loaded once; 4 x 1 of them are neighbours
// coalescing: 32 turns of the loop at a time, operands in shared memory, 4 turns written out
// prefetching: 2 parts in flight by cp.async, no registers for it
// `p`: 32 x 32 elements a part in shared memory
// `v`: 32 x 64 elements a part in shared memory
__global__ void __launch_bounds__(128)
attention_values_tuned_full(const float *p, const float *v, float *o, int n, int d, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    // A warp is 8 x 4 threads.
    const int thread_x = thread / 32 % 2 * 8 + thread % 8;
    const int thread_y = thread / 64 * 4 + thread % 32 / 8;
    const int block_x = blockIdx.x * 64;
    const int block_y = blockIdx.y * 32;
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = 0;
        }
    }
    __shared__ __align__(16) float p_tile[3][32][36];
    __shared__ __align__(16) float v_tile[3][32][64];
    const int parts = (n) / 32;
    const int p_row = thread / 8, p_column = thread % 8 * 4;
    const float* p_from = p + (n * block_y + p_row * (n) + p_column);
    const int v_row = thread / 16, v_column = thread % 16 * 4;
    const float* v_from = v + (block_x + v_row * (d) + v_column);
    for (int part = 0; part < 2; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = 0; item < 2; ++item) {
                __pipeline_memcpy_async(&p_tile[part % 3][p_row + item * 16][p_column], p_from + part * (32) + item * (16 * n), 16);
            }
#pragma unroll
            for (int item_ = 0; item_ < 4; ++item_) {
                __pipeline_memcpy_async(&v_tile[part % 3][v_row + item_ * 8][v_column], v_from + part * (32 * d) + item_ * (8 * d), 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (part + 2 < parts) {
#pragma unroll
            for (int item = 0; item < 2; ++item) {
                __pipeline_memcpy_async(&p_tile[(part + 2) % 3][p_row + item * 16][p_column], p_from + (part + 2) * (32) + item * (16 * n), 16);
            }
#pragma unroll
            for (int item_ = 0; item_ < 4; ++item_) {
                __pipeline_memcpy_async(&v_tile[(part + 2) % 3][v_row + item_ * 8][v_column], v_from + (part + 2) * (32 * d) + item_ * (8 * d), 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 3;
#pragma unroll
        for (int i_in = 0; i_in < 32; i_in += 4) {
            __align__(16) float p_part[4][4];
#pragma unroll
            for (int py = 0; py < 4; ++py) {
                *reinterpret_cast<float4*>(&p_part[py][0]) = *reinterpret_cast<const float4*>(&p_tile[buffer][py * 8 + thread_y][i_in]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                __align__(16) float v_part[4];
                *reinterpret_cast<float4*>(&v_part[0]) = *reinterpret_cast<const float4*>(&v_tile[buffer][(i_in + turn)][thread_x * 4]);
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int px = 0; px < 4; ++px) {
                        sum[py][px] += p_part[py][turn] * v_part[px];
                    }
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            o[d * idy + idx] = sum[py][px];
        }
    }
}

__global__ void __launch_bounds__(128)
attention_values_tuned_wide(const float *p, const float *v, float *o, int n, int d, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    // A warp is 8 x 4 threads.
    const int thread_x = thread / 32 % 2 * 8 + thread % 8;
    const int thread_y = thread / 64 * 4 + thread % 32 / 8;
    const int block_x = blockIdx.x * 64;
    const int block_y = blockIdx.y * 32;
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = 0;
        }
    }
    __shared__ __align__(16) float p_tile[3][32][36];
    __shared__ __align__(16) float v_tile[3][32][64];
    const int parts = (n + 31) / 32;
    for (int part = 0; part < 2; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 256; item += 128) {
                const int row = item / 8, column = item % 8 * 4;
                __pipeline_memcpy_async(&p_tile[part % 3][row][column], &p[min(block_y + row, idy_end - 1) * n + min(part * 32 + column, n - 4)], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 512; item_ += 128) {
                const int row_ = item_ / 16, column_ = item_ % 16 * 4;
                __pipeline_memcpy_async(&v_tile[part % 3][row_][column_], &v[min(part * 32 + row_, n - 1) * d + min(block_x + column_, idx_end - 4)], 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (part + 2 < parts) {
#pragma unroll
            for (int item = thread; item < 256; item += 128) {
                const int row = item / 8, column = item % 8 * 4;
                __pipeline_memcpy_async(&p_tile[(part + 2) % 3][row][column], &p[min(block_y + row, idy_end - 1) * n + min((part + 2) * 32 + column, n - 4)], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 512; item_ += 128) {
                const int row_ = item_ / 16, column_ = item_ % 16 * 4;
                __pipeline_memcpy_async(&v_tile[(part + 2) % 3][row_][column_], &v[min((part + 2) * 32 + row_, n - 1) * d + min(block_x + column_, idx_end - 4)], 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 3;
        const int left = min(32, n - part * 32);
        int i_in = 0;
        for (; i_in + 4 <= left; i_in += 4) {
            __align__(16) float p_part[4][4];
#pragma unroll
            for (int py = 0; py < 4; ++py) {
                *reinterpret_cast<float4*>(&p_part[py][0]) = *reinterpret_cast<const float4*>(&p_tile[buffer][py * 8 + thread_y][i_in]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                __align__(16) float v_part[4];
                *reinterpret_cast<float4*>(&v_part[0]) = *reinterpret_cast<const float4*>(&v_tile[buffer][(i_in + turn)][thread_x * 4]);
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int px = 0; px < 4; ++px) {
                        sum[py][px] += p_part[py][turn] * v_part[px];
                    }
                }
            }
        }
        for (; i_in < left; ++i_in) {
            float p_part_[4];
#pragma unroll
            for (int py = 0; py < 4; ++py) {
                p_part_[py] = p_tile[buffer][py * 8 + thread_y][i_in];
            }
            __align__(16) float v_part_[4];
            *reinterpret_cast<float4*>(&v_part_[0]) = *reinterpret_cast<const float4*>(&v_tile[buffer][i_in][thread_x * 4]);
#pragma unroll
            for (int py = 0; py < 4; ++py) {
#pragma unroll
                for (int px = 0; px < 4; ++px) {
                    sum[py][px] += p_part_[py] * v_part_[px];
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idy < idy_end) {
                o[d * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(128)
attention_values_tuned(const float *p, const float *v, float *o, int n, int d, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    // A warp is 8 x 4 threads.
    const int thread_x = thread / 32 % 2 * 8 + thread % 8;
    const int thread_y = thread / 64 * 4 + thread % 32 / 8;
    const int block_x = blockIdx.x * 64;
    const int block_y = blockIdx.y * 32;
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = 0;
        }
    }
    __shared__ __align__(16) float p_tile[3][32][36];
    __shared__ __align__(16) float v_tile[3][32][64];
    const int parts = (n + 31) / 32;
    for (int part = 0; part < 2; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 1024; item += 128) {
                const int row = item / 32, column = item % 32;
                __pipeline_memcpy_async(&p_tile[part % 3][row][column], &p[min(block_y + row, idy_end - 1) * n + min(part * 32 + column, n - 1)], 4);
            }
#pragma unroll
            for (int item_ = thread; item_ < 2048; item_ += 128) {
                const int row_ = item_ / 64, column_ = item_ % 64;
                __pipeline_memcpy_async(&v_tile[part % 3][row_][column_], &v[min(part * 32 + row_, n - 1) * d + min(block_x + column_, idx_end - 1)], 4);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (part + 2 < parts) {
#pragma unroll
            for (int item = thread; item < 1024; item += 128) {
                const int row = item / 32, column = item % 32;
                __pipeline_memcpy_async(&p_tile[(part + 2) % 3][row][column], &p[min(block_y + row, idy_end - 1) * n + min((part + 2) * 32 + column, n - 1)], 4);
            }
#pragma unroll
            for (int item_ = thread; item_ < 2048; item_ += 128) {
                const int row_ = item_ / 64, column_ = item_ % 64;
                __pipeline_memcpy_async(&v_tile[(part + 2) % 3][row_][column_], &v[min((part + 2) * 32 + row_, n - 1) * d + min(block_x + column_, idx_end - 1)], 4);
            }
        }
        __pipeline_commit();
        const int buffer = part % 3;
        const int left = min(32, n - part * 32);
        int i_in = 0;
        for (; i_in + 4 <= left; i_in += 4) {
            __align__(16) float p_part[4][4];
#pragma unroll
            for (int py = 0; py < 4; ++py) {
                *reinterpret_cast<float4*>(&p_part[py][0]) = *reinterpret_cast<const float4*>(&p_tile[buffer][py * 8 + thread_y][i_in]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                __align__(16) float v_part[4];
                *reinterpret_cast<float4*>(&v_part[0]) = *reinterpret_cast<const float4*>(&v_tile[buffer][(i_in + turn)][thread_x * 4]);
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int px = 0; px < 4; ++px) {
                        sum[py][px] += p_part[py][turn] * v_part[px];
                    }
                }
            }
        }
        for (; i_in < left; ++i_in) {
            float p_part_[4];
#pragma unroll
            for (int py = 0; py < 4; ++py) {
                p_part_[py] = p_tile[buffer][py * 8 + thread_y][i_in];
            }
            __align__(16) float v_part_[4];
            *reinterpret_cast<float4*>(&v_part_[0]) = *reinterpret_cast<const float4*>(&v_tile[buffer][i_in][thread_x * 4]);
#pragma unroll
            for (int py = 0; py < 4; ++py) {
#pragma unroll
                for (int px = 0; px < 4; ++px) {
                    sum[py][px] += p_part_[py] * v_part_[px];
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idy < idy_end) {
                o[d * idy + idx] = sum[py][px];
            }
        }
    }
}

static inline cudaError_t attention_values_try(dim3 grid_, dim3 block_, const float *p, const float *v, float *o, int n, int d, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid_.z * block_.z != 1) return cudaErrorNotSupported;
    if (n < 0 ||
        d < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid_.x * block_.x;
    if (idx_end > (long long)d) idx_end = (long long)d;
    long long idy_end = (long long)grid_.y * block_.y;
    if (idy_end > (long long)n) idy_end = (long long)n;
    if (idx_end <= 0 ||
        idx_end > 2147352576 ||
        idy_end <= 0 ||
        idy_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)idy_end - 1 > 2147483647.0 ||
        (double)d > 2147483647.0 ||
        (double)n > 2147483647.0 ||
        (double)n * (double)idy_end - (double)n > 2147483647.0 ||
        (double)n * (double)idy_end - 1 > 2147483647.0 ||
        (double)n * (double)d - (double)d > 2147483647.0 ||
        (double)n * (double)d + (double)idx_end - (double)d - 1 > 2147483647.0 ||
        (double)d * (double)idy_end - (double)d > 2147483647.0 ||
        (double)d * (double)idy_end + (double)idx_end - (double)d - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long p_first = 0;
    long long p_last = (long long)n * (long long)idy_end - 1;
    long long v_first = 0;
    long long v_last = (long long)n * (long long)d + (long long)idx_end - (long long)d - 1;
    long long o_first = 0;
    long long o_last = (long long)d * (long long)idy_end + (long long)idx_end - (long long)d - 1;
    if (((const char*)(p + p_first) < (const char*)(o + o_last) + 4 && (const char*)(o + o_first) < (const char*)(p + p_last) + 4) ||
        ((const char*)(v + v_first) < (const char*)(o + o_last) + 4 && (const char*)(o + o_first) < (const char*)(v + v_last) + 4)) return cudaErrorNotSupported;
    if (((long long)idx_end) % 64 == 0 &&
        ((long long)idy_end) % 32 == 0 &&
        ((long long)n) % 32 == 0 &&
        ((long long)n) % 4 == 0 &&
        (size_t)p % 16 == 0 &&
        ((long long)d) % 4 == 0 &&
        (size_t)v % 16 == 0) {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        attention_values_tuned_full<<<dim3((unsigned)((idx_end + 63) / 64), (unsigned)((idy_end + 31) / 32), (unsigned)(1)), 128, 0, stream_>>>(
            p, v, o, n, d, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    if (((long long)n) % 4 == 0 &&
        (size_t)p % 16 == 0 &&
        ((long long)d) % 4 == 0 &&
        ((long long)idx_end) % 4 == 0 &&
        (size_t)v % 16 == 0) {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        attention_values_tuned_wide<<<dim3((unsigned)((idx_end + 63) / 64), (unsigned)((idy_end + 31) / 32), (unsigned)(1)), 128, 0, stream_>>>(
            p, v, o, n, d, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        attention_values_tuned<<<dim3((unsigned)((idx_end + 63) / 64), (unsigned)((idy_end + 31) / 32), (unsigned)(1)), 128, 0, stream_>>>(
            p, v, o, n, d, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
}

// In place of attention_values<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void attention_values_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *p, const float *v, float *o, int n, int d)
{
    if (attention_values_try(grid_, block_, p, v, o, n, d, stream_) == cudaErrorNotSupported)
        attention_values<<<grid_, block_, shared, stream_>>>(p, v, o, n, d);
}

}  // extern "C++"


extern "C" void run_attention_values(const float *p, const float *v, float *o, int n, int d, cudaStream_t stream) {
    dim3 block(16, 16), grid((d + 15) / 16, (n + 15) / 16);
    attention_values_launch(grid, block, 0, stream, p, v, o, n, d);
}
