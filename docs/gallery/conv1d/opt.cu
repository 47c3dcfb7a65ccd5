// One-dimensional convolution with channels: out[o][x] from in[c][x + t] and w[o][c][t].

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

#include <cuda_pipeline.h>

// block merge (section 3.5.1): a block of 256 threads computes 256 x 128 points
// thread merge (section 3.5.2): a thread computes 8 x 16 points, and what they share is loaded once; 4 x 1 of them are neighbours
// coalescing (section 3.3): 8 turns of the loop at a time, operands in shared memory, 4 turns written out
// prefetching (section 3.6): 2 parts in flight by cp.async, no registers for it
// `in`: 1 x 264 elements a part in shared memory
// `w`: 128 x 8 elements a part in shared memory
__global__ void __launch_bounds__(256)
conv1d_tuned(const float *in, const float *w, float *out, int outs, int ins, int n, int taps, int idx_end, int idy_end)
{
    const int thread = threadIdx.x;
    // A warp is 8 x 4 threads.
    const int thread_x = thread / 32 % 4 * 8 + thread % 8;
    const int thread_y = thread / 128 * 4 + thread % 32 / 8;
    const int block_x = blockIdx.x * 256;
    const int block_y = blockIdx.y * 128;
    float sum[16][8];
#pragma unroll
    for (int py = 0; py < 16; ++py) {
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            sum[py][px] = 0;
        }
    }
    for (int c = 0; c < ins; ++c) {
        __shared__ __align__(16) float in_tile[3][1][264];
        __shared__ __align__(16) float w_tile[3][128][12];
        const int parts = (taps + 7) / 8;
        for (int part = 0; part < 2; ++part) {
            if (part < parts) {
#pragma unroll
                for (int item = thread; item < 264; item += 256) {
                    const int row = 0, column = item;
                    __pipeline_memcpy_async(&in_tile[part % 3][row][column], &in[n * c + taps * c - c + min(block_x + part * 8 + column, taps + idx_end - 2)], 4);
                }
#pragma unroll
                for (int item_ = thread; item_ < 1024; item_ += 256) {
                    const int row_ = item_ / 8, column_ = item_ % 8;
                    __pipeline_memcpy_async(&w_tile[part % 3][row_][column_], &w[taps * c + min(block_y + row_, idy_end - 1) * (ins * taps) + min(part * 8 + column_, taps - 1)], 4);
                }
            }
            __pipeline_commit();
        }
        for (int part = 0; part < parts; ++part) {
            __pipeline_wait_prior(1);
            __syncthreads();
            if (part + 2 < parts) {
#pragma unroll
                for (int item = thread; item < 264; item += 256) {
                    const int row = 0, column = item;
                    __pipeline_memcpy_async(&in_tile[(part + 2) % 3][row][column], &in[n * c + taps * c - c + min(block_x + (part + 2) * 8 + column, taps + idx_end - 2)], 4);
                }
#pragma unroll
                for (int item_ = thread; item_ < 1024; item_ += 256) {
                    const int row_ = item_ / 8, column_ = item_ % 8;
                    __pipeline_memcpy_async(&w_tile[(part + 2) % 3][row_][column_], &w[taps * c + min(block_y + row_, idy_end - 1) * (ins * taps) + min((part + 2) * 8 + column_, taps - 1)], 4);
                }
            }
            __pipeline_commit();
            const int buffer = part % 3;
            const int left = min(8, taps - part * 8);
            int t_in = 0;
            for (; t_in + 4 <= left; t_in += 4) {
                __align__(16) float in_part[2][8];
#pragma unroll
                for (int px = 0; px < 8; px += 4) {
#pragma unroll
                    for (int c_ = 0; c_ < 8; c_ += 4) {
                        *reinterpret_cast<float4*>(&in_part[px / 4][c_]) = *reinterpret_cast<const float4*>(&in_tile[buffer][0][px * 32 + thread_x * 4 + t_in + c_]);
                    }
                }
                __align__(16) float w_part[16][4];
#pragma unroll
                for (int py = 0; py < 16; ++py) {
                    *reinterpret_cast<float4*>(&w_part[py][0]) = *reinterpret_cast<const float4*>(&w_tile[buffer][py * 8 + thread_y][t_in]);
                }
#pragma unroll
                for (int turn = 0; turn < 4; ++turn) {
#pragma unroll
                    for (int py = 0; py < 16; ++py) {
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
                        in_part_[px / 4][c___] = in_tile[buffer][0][px * 32 + thread_x * 4 + t_in + c___];
                    }
                }
                float w_part_[16];
#pragma unroll
                for (int py = 0; py < 16; ++py) {
                    w_part_[py] = w_tile[buffer][py * 8 + thread_y][t_in];
                }
#pragma unroll
                for (int py = 0; py < 16; ++py) {
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
    for (int py = 0; py < 16; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 8; ++px) {
            const int idx = block_x + px / 4 * 128 + thread_x * 4 + px % 4;
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
    {
        if ((idy_end + 127) / 128 > 65535) return cudaErrorNotSupported;
        conv1d_tuned<<<dim3((unsigned)((idx_end + 255) / 256), (unsigned)((idy_end + 127) / 128), (unsigned)(1)), 256, 0, stream_>>>(
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
