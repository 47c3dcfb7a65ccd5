// One-dimensional convolution with channels: out[o][x] from in[c][x + t] and w[o][c][t].

#include <cuda_pipeline.h>

#pragma warpwright naive sizes(outs=256, ins=128, n=16384, taps=5) outputs(out)
extern "C" __global__ void conv1d(const float *in, const float *w, float *out, int outs, int ins, int n, int taps) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= outs) return;
    int width = n + taps - 1;
    float sum = 0;
    for (int c = 0; c < ins; c++)
        for (int t = 0; t < taps; t++) sum += in[c * width + idx + t] * w[(idy * ins + c) * taps + t];
    out[idy * n + idx] = sum;
}

extern "C++" {

// block merge: a block of 256 threads computes 128 x 64 points
// thread merge: a thread computes 8 x 4 points, and what they share is loaded once; 4 x 1 of them are neighbours
// coalescing: 8 turns of the loop at a time, operands in shared memory, 8 turns written out
// prefetching: 1 part in flight by cp.async, no registers for it
// the expected small sizes are constants in kernels of their own
// `in`: 8 x 132 elements a part in shared memory
// `w`: 64 x 40 elements a part in shared memory
// `in`: 1 x 136 elements a part in shared memory
// `w`: 64 x 8 elements a part in shared memory
__global__ void __launch_bounds__(256)
conv1d_tuned_fixed_full(const float *in, const float *w, float *out, int outs, int ins, int n, int taps, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 64;
    float sum[4][8];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0;
        }
    }
    __shared__ __align__(16) float in_tile[2][8][132];
    __shared__ __align__(16) float w_tile[2][64][44];
    const int parts = (ins) / 8;
    for (int part = 0; part < 1; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 264; item += 256) {
                const int row = item / 33, column = item % 33 * 4;
                __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[(part * 8 + row) * (n + 4) + block_x + column], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 640; item_ += 256) {
                const int row_ = item_ / 10, column_ = item_ % 10 * 4;
                __pipeline_memcpy_async(&w_tile[part % 2][row_][column_], &w[(block_y + row_) * (5 * ins) + (part * 8) * 5 + column_], 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (part + 1 < parts) {
#pragma unroll
            for (int item = thread; item < 264; item += 256) {
                const int row = item / 33, column = item % 33 * 4;
                __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[((part + 1) * 8 + row) * (n + 4) + block_x + column], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 640; item_ += 256) {
                const int row_ = item_ / 10, column_ = item_ % 10 * 4;
                __pipeline_memcpy_async(&w_tile[(part + 1) % 2][row_][column_], &w[(block_y + row_) * (5 * ins) + ((part + 1) * 8) * 5 + column_], 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 2;
        for (int c_in = 0; c_in < 8; ++c_in) {
#pragma unroll
            for (int t_in = 0; t_in < 5; t_in += 5) {
                float in_part[2][8];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c_ = 0; c_ < 8; ++c_) {
                        in_part[px / 4][c_] = in_tile[buffer][c_in][px * 16 + thread_x * 4 + t_in + c_];
                    }
                }
                float w_part[4][5];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int c__ = 0; c__ < 5; ++c__) {
                        w_part[py][c__] = w_tile[buffer][py * 16 + thread_y][c_in * 5 + t_in + c__];
                    }
                }
#pragma unroll
                for (int turn = 0; turn < 5; ++turn) {
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int px = 0; px < 8; ++px) {
                            sum[py][px] += in_part[px / 4][px % 4 + turn] * w_part[py][turn];
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 16 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int idx = block_x + px / 4 * 64 + thread_x * 4 + px % 4;
            out[n * idy + idx] = sum[py][px];
        }
    }
}

__global__ void __launch_bounds__(256)
conv1d_tuned_fixed_wide(const float *in, const float *w, float *out, int outs, int ins, int n, int taps, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 64;
    float sum[4][8];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0;
        }
    }
    __shared__ __align__(16) float in_tile[2][8][132];
    __shared__ __align__(16) float w_tile[2][64][44];
    const int parts = (ins + 7) / 8;
    for (int part = 0; part < 1; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 264; item += 256) {
                const int row = item / 33, column = item % 33 * 4;
                __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[min(part * 8 + row, ins - 1) * (n + 4) + min(block_x + column, idx_end)], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 640; item_ += 256) {
                const int row_ = item_ / 10, column_ = item_ % 10 * 4;
                __pipeline_memcpy_async(&w_tile[part % 2][row_][column_], &w[min(block_y + row_, idy_end - 1) * (5 * ins) + min((part * 8) * 5 + column_, 5 * ins - 4)], 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (part + 1 < parts) {
#pragma unroll
            for (int item = thread; item < 264; item += 256) {
                const int row = item / 33, column = item % 33 * 4;
                __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[min((part + 1) * 8 + row, ins - 1) * (n + 4) + min(block_x + column, idx_end)], 16);
            }
#pragma unroll
            for (int item_ = thread; item_ < 640; item_ += 256) {
                const int row_ = item_ / 10, column_ = item_ % 10 * 4;
                __pipeline_memcpy_async(&w_tile[(part + 1) % 2][row_][column_], &w[min(block_y + row_, idy_end - 1) * (5 * ins) + min(((part + 1) * 8) * 5 + column_, 5 * ins - 4)], 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 2;
        const int left = min(8, ins - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
#pragma unroll
            for (int t_in = 0; t_in < 5; t_in += 5) {
                float in_part[2][8];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c_ = 0; c_ < 8; ++c_) {
                        in_part[px / 4][c_] = in_tile[buffer][c_in][px * 16 + thread_x * 4 + t_in + c_];
                    }
                }
                float w_part[4][5];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int c__ = 0; c__ < 5; ++c__) {
                        w_part[py][c__] = w_tile[buffer][py * 16 + thread_y][c_in * 5 + t_in + c__];
                    }
                }
#pragma unroll
                for (int turn = 0; turn < 5; ++turn) {
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int px = 0; px < 8; ++px) {
                            sum[py][px] += in_part[px / 4][px % 4 + turn] * w_part[py][turn];
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 16 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int idx = block_x + px / 4 * 64 + thread_x * 4 + px % 4;
            if (idx < idx_end && idy < idy_end) {
                out[n * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(256)
conv1d_tuned_fixed(const float *in, const float *w, float *out, int outs, int ins, int n, int taps, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 64;
    float sum[4][8];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0;
        }
    }
    __shared__ __align__(16) float in_tile[2][8][132];
    __shared__ __align__(16) float w_tile[2][64][44];
    const int parts = (ins + 7) / 8;
    for (int part = 0; part < 1; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 1056; item += 256) {
                const int row = item / 132, column = item % 132;
                __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[min(part * 8 + row, ins - 1) * (n + 4) + min(block_x + column, idx_end + 3)], 4);
            }
#pragma unroll
            for (int item_ = thread; item_ < 2560; item_ += 256) {
                const int row_ = item_ / 40, column_ = item_ % 40;
                __pipeline_memcpy_async(&w_tile[part % 2][row_][column_], &w[min(block_y + row_, idy_end - 1) * (5 * ins) + min((part * 8) * 5 + column_, 5 * ins - 1)], 4);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (part + 1 < parts) {
#pragma unroll
            for (int item = thread; item < 1056; item += 256) {
                const int row = item / 132, column = item % 132;
                __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[min((part + 1) * 8 + row, ins - 1) * (n + 4) + min(block_x + column, idx_end + 3)], 4);
            }
#pragma unroll
            for (int item_ = thread; item_ < 2560; item_ += 256) {
                const int row_ = item_ / 40, column_ = item_ % 40;
                __pipeline_memcpy_async(&w_tile[(part + 1) % 2][row_][column_], &w[min(block_y + row_, idy_end - 1) * (5 * ins) + min(((part + 1) * 8) * 5 + column_, 5 * ins - 1)], 4);
            }
        }
        __pipeline_commit();
        const int buffer = part % 2;
        const int left = min(8, ins - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
#pragma unroll
            for (int t_in = 0; t_in < 5; t_in += 5) {
                float in_part[2][8];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c_ = 0; c_ < 8; ++c_) {
                        in_part[px / 4][c_] = in_tile[buffer][c_in][px * 16 + thread_x * 4 + t_in + c_];
                    }
                }
                float w_part[4][5];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int c__ = 0; c__ < 5; ++c__) {
                        w_part[py][c__] = w_tile[buffer][py * 16 + thread_y][c_in * 5 + t_in + c__];
                    }
                }
#pragma unroll
                for (int turn = 0; turn < 5; ++turn) {
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int px = 0; px < 8; ++px) {
                            sum[py][px] += in_part[px / 4][px % 4 + turn] * w_part[py][turn];
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 16 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int idx = block_x + px / 4 * 64 + thread_x * 4 + px % 4;
            if (idx < idx_end && idy < idy_end) {
                out[n * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(256)
conv1d_tuned_wide(const float *in, const float *w, float *out, int outs, int ins, int n, int taps, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 64;
    float sum[4][8];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0;
        }
    }
    for (int c = 0; c < ins; ++c) {
        __shared__ __align__(16) float in_tile[2][1][136];
        __shared__ __align__(16) float w_tile[2][64][12];
        const int parts = (taps + 7) / 8;
        for (int part = 0; part < 1; ++part) {
            if (part < parts) {
#pragma unroll
                for (int item = thread; item < 34; item += 256) {
                    const int row = 0, column = item * 4;
                    __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[n * c + taps * c - c + min(block_x + part * 8 + column, taps + idx_end - 5)], 16);
                }
#pragma unroll
                for (int item_ = thread; item_ < 512; item_ += 256) {
                    const int row_ = item_ / 8, column_ = item_ % 8;
                    __pipeline_memcpy_async(&w_tile[part % 2][row_][column_], &w[taps * c + min(block_y + row_, idy_end - 1) * (ins * taps) + min(part * 8 + column_, taps - 1)], 4);
                }
            }
            __pipeline_commit();
        }
        for (int part = 0; part < parts; ++part) {
            __pipeline_wait_prior(0);
            __syncthreads();
            if (part + 1 < parts) {
#pragma unroll
                for (int item = thread; item < 34; item += 256) {
                    const int row = 0, column = item * 4;
                    __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[n * c + taps * c - c + min(block_x + (part + 1) * 8 + column, taps + idx_end - 5)], 16);
                }
#pragma unroll
                for (int item_ = thread; item_ < 512; item_ += 256) {
                    const int row_ = item_ / 8, column_ = item_ % 8;
                    __pipeline_memcpy_async(&w_tile[(part + 1) % 2][row_][column_], &w[taps * c + min(block_y + row_, idy_end - 1) * (ins * taps) + min((part + 1) * 8 + column_, taps - 1)], 4);
                }
            }
            __pipeline_commit();
            const int buffer = part % 2;
            const int left = min(8, taps - part * 8);
            int t_in = 0;
            for (; t_in + 8 <= left; t_in += 8) {
                __align__(16) float in_part[2][12];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c_ = 0; c_ < 12; c_ += 4) {
                        *reinterpret_cast<float4*>(&in_part[px / 4][c_]) = *reinterpret_cast<const float4*>(&in_tile[buffer][0][px * 16 + thread_x * 4 + t_in + c_]);
                    }
                }
                __align__(16) float w_part[4][8];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int c__ = 0; c__ < 8; c__ += 4) {
                        *reinterpret_cast<float4*>(&w_part[py][c__]) = *reinterpret_cast<const float4*>(&w_tile[buffer][py * 16 + thread_y][t_in + c__]);
                    }
                }
#pragma unroll
                for (int turn = 0; turn < 8; ++turn) {
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int px = 0; px < 8; ++px) {
                            sum[py][px] += in_part[px / 4][px % 4 + turn] * w_part[py][turn];
                        }
                    }
                }
            }
            for (; t_in < left; ++t_in) {
                float in_part_[2][4];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c___ = 0; c___ < 4; ++c___) {
                        in_part_[px / 4][c___] = in_tile[buffer][0][px * 16 + thread_x * 4 + t_in + c___];
                    }
                }
                float w_part_[4];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
                    w_part_[py] = w_tile[buffer][py * 16 + thread_y][t_in];
                }
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int px = 0; px < 8; ++px) {
                        sum[py][px] += in_part_[px / 4][px % 4] * w_part_[py];
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 16 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int idx = block_x + px / 4 * 64 + thread_x * 4 + px % 4;
            if (idx < idx_end && idy < idy_end) {
                out[n * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(256)
conv1d_tuned(const float *in, const float *w, float *out, int outs, int ins, int n, int taps, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 64;
    float sum[4][8];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0;
        }
    }
    for (int c = 0; c < ins; ++c) {
        __shared__ __align__(16) float in_tile[2][1][136];
        __shared__ __align__(16) float w_tile[2][64][12];
        const int parts = (taps + 7) / 8;
        for (int part = 0; part < 1; ++part) {
            if (part < parts) {
#pragma unroll
                for (int item = thread; item < 136; item += 256) {
                    const int row = 0, column = item;
                    __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[n * c + taps * c - c + min(block_x + part * 8 + column, taps + idx_end - 2)], 4);
                }
#pragma unroll
                for (int item_ = thread; item_ < 512; item_ += 256) {
                    const int row_ = item_ / 8, column_ = item_ % 8;
                    __pipeline_memcpy_async(&w_tile[part % 2][row_][column_], &w[taps * c + min(block_y + row_, idy_end - 1) * (ins * taps) + min(part * 8 + column_, taps - 1)], 4);
                }
            }
            __pipeline_commit();
        }
        for (int part = 0; part < parts; ++part) {
            __pipeline_wait_prior(0);
            __syncthreads();
            if (part + 1 < parts) {
#pragma unroll
                for (int item = thread; item < 136; item += 256) {
                    const int row = 0, column = item;
                    __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[n * c + taps * c - c + min(block_x + (part + 1) * 8 + column, taps + idx_end - 2)], 4);
                }
#pragma unroll
                for (int item_ = thread; item_ < 512; item_ += 256) {
                    const int row_ = item_ / 8, column_ = item_ % 8;
                    __pipeline_memcpy_async(&w_tile[(part + 1) % 2][row_][column_], &w[taps * c + min(block_y + row_, idy_end - 1) * (ins * taps) + min((part + 1) * 8 + column_, taps - 1)], 4);
                }
            }
            __pipeline_commit();
            const int buffer = part % 2;
            const int left = min(8, taps - part * 8);
            int t_in = 0;
            for (; t_in + 8 <= left; t_in += 8) {
                __align__(16) float in_part[2][12];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c_ = 0; c_ < 12; c_ += 4) {
                        *reinterpret_cast<float4*>(&in_part[px / 4][c_]) = *reinterpret_cast<const float4*>(&in_tile[buffer][0][px * 16 + thread_x * 4 + t_in + c_]);
                    }
                }
                __align__(16) float w_part[4][8];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int c__ = 0; c__ < 8; c__ += 4) {
                        *reinterpret_cast<float4*>(&w_part[py][c__]) = *reinterpret_cast<const float4*>(&w_tile[buffer][py * 16 + thread_y][t_in + c__]);
                    }
                }
#pragma unroll
                for (int turn = 0; turn < 8; ++turn) {
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int px = 0; px < 8; ++px) {
                            sum[py][px] += in_part[px / 4][px % 4 + turn] * w_part[py][turn];
                        }
                    }
                }
            }
            for (; t_in < left; ++t_in) {
                float in_part_[2][4];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c___ = 0; c___ < 4; ++c___) {
                        in_part_[px / 4][c___] = in_tile[buffer][0][px * 16 + thread_x * 4 + t_in + c___];
                    }
                }
                float w_part_[4];
#pragma unroll
                for (int py = 0; py < 4; ++py) {
                    w_part_[py] = w_tile[buffer][py * 16 + thread_y][t_in];
                }
#pragma unroll
                for (int py = 0; py < 4; ++py) {
#pragma unroll
                    for (int px = 0; px < 8; ++px) {
                        sum[py][px] += in_part_[px / 4][px % 4] * w_part_[py];
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 16 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int idx = block_x + px / 4 * 64 + thread_x * 4 + px % 4;
            if (idx < idx_end && idy < idy_end) {
                out[n * idy + idx] = sum[py][px];
            }
        }
    }
}

static inline cudaError_t conv1d_try(dim3 grid_, dim3 block_, const float *in, const float *w, float *out, int outs, int ins, int n, int taps, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid_.z * block_.z != 1) return cudaErrorNotSupported;
    if (outs < 0 ||
        ins < 0 ||
        n < 0 ||
        taps < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid_.x * block_.x;
    if (idx_end > (long long)n) idx_end = (long long)n;
    long long idy_end = (long long)grid_.y * block_.y;
    if (idy_end > (long long)outs) idy_end = (long long)outs;
    if (idx_end <= 0 ||
        idx_end > 2147352576 ||
        idy_end <= 0 ||
        idy_end > 2147352576) return cudaErrorNotSupported;
    if ((long long)n + (long long)taps - 1 < 0) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)idy_end - 1 > 2147483647.0 ||
        (double)outs > 2147483647.0 ||
        (double)n + (double)taps > 2147483647.0 ||
        (double)ins * (double)n + (double)ins * (double)taps + 1 - (double)ins - (double)n - (double)taps > 2147483647.0 ||
        (double)ins * (double)n + (double)ins * (double)taps + (double)idx_end - (double)ins - (double)n - (double)taps > 2147483647.0 ||
        (double)ins * (double)n + (double)ins * (double)taps + (double)idx_end - (double)ins - (double)n - 1 > 2147483647.0 ||
        (double)ins * (double)idy_end - (double)ins > 2147483647.0 ||
        (double)ins * (double)idy_end - 1 > 2147483647.0 ||
        (double)ins * (double)taps * (double)idy_end - (double)taps > 2147483647.0 ||
        (double)ins * (double)taps * (double)idy_end - 1 > 2147483647.0 ||
        (double)n * (double)idy_end - (double)n > 2147483647.0 ||
        (double)n * (double)idy_end + (double)idx_end - (double)n - 1 > 2147483647.0 ||
        (double)n + (double)taps - 1 < -2147483648.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long in_first = 0;
    long long in_last = (long long)ins * (long long)n + (long long)ins * (long long)taps + (long long)idx_end - (long long)ins - (long long)n - 1;
    long long w_first = 0;
    long long w_last = (long long)ins * (long long)taps * (long long)idy_end - 1;
    long long out_first = 0;
    long long out_last = (long long)n * (long long)idy_end + (long long)idx_end - (long long)n - 1;
    if (((const char*)(in + in_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(in + in_last) + 4) ||
        ((const char*)(w + w_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(w + w_last) + 4)) return cudaErrorNotSupported;
    if (((long long)idx_end) % 128 == 0 &&
        ((long long)idy_end) % 64 == 0 &&
        ((long long)ins) % 8 == 0 &&
        ((long long)n + 4) % 4 == 0 &&
        (size_t)in % 16 == 0 &&
        (5 * (long long)ins) % 4 == 0 &&
        (size_t)w % 16 == 0 &&
        taps == 5) {
        if ((idy_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv1d_tuned_fixed_full<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 63) / 64), (unsigned)(1)), 256, 0, stream_>>>(
            in, w, out, outs, ins, n, taps, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    if (((long long)n + 4) % 4 == 0 &&
        ((long long)idx_end + 4) % 4 == 0 &&
        (size_t)in % 16 == 0 &&
        (5 * (long long)ins) % 4 == 0 &&
        (size_t)w % 16 == 0 &&
        taps == 5) {
        if ((idy_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv1d_tuned_fixed_wide<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 63) / 64), (unsigned)(1)), 256, 0, stream_>>>(
            in, w, out, outs, ins, n, taps, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    if (taps == 5) {
        if ((idy_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv1d_tuned_fixed<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 63) / 64), (unsigned)(1)), 256, 0, stream_>>>(
            in, w, out, outs, ins, n, taps, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    if (((long long)n + (long long)taps - 1) % 4 == 0 &&
        ((long long)taps + (long long)idx_end - 1) % 4 == 0 &&
        (size_t)in % 16 == 0) {
        if ((idy_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv1d_tuned_wide<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 63) / 64), (unsigned)(1)), 256, 0, stream_>>>(
            in, w, out, outs, ins, n, taps, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
    {
        if ((idy_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv1d_tuned<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 63) / 64), (unsigned)(1)), 256, 0, stream_>>>(
            in, w, out, outs, ins, n, taps, (int)idx_end, (int)idy_end);
        return cudaPeekAtLastError();
    }
}

// In place of conv1d<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void conv1d_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *in, const float *w, float *out, int outs, int ins, int n, int taps)
{
    if (conv1d_try(grid_, block_, in, w, out, outs, ins, n, taps, stream_) == cudaErrorNotSupported)
        conv1d<<<grid_, block_, shared, stream_>>>(in, w, out, outs, ins, n, taps);
}

}  // extern "C++"


extern "C" void run_conv1d(const float *in, const float *w, float *out, int outs, int ins, int n, int taps,
                           cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (outs + 15) / 16);
    conv1d_launch(grid, block, 0, stream, in, w, out, outs, ins, n, taps);
}
