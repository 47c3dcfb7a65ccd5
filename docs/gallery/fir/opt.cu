// A filter over a signal, which has taps - 1 more elements than the result.

#pragma warpwright naive sizes(n=4194304, taps=128) outputs(y)
extern "C" __global__ void fir(const float *x, const float *h, float *y, int n, int taps) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float sum = 0;
    for (int i = 0; i < taps; i++) sum += x[idx + i] * h[i];
    y[idx] = sum;
}

extern "C++" {

// block merge: a block of 256 threads computes 4096 points
// thread merge: a thread computes 16 points, and what they share is loaded once; 4 of them are neighbours
// coalescing: 128 turns of the loop at a time, operands in shared memory, 8 turns written out
// `x`: 1 x 4224 elements a part in shared memory
// `h`: 1 x 128 elements a part in shared memory
__global__ void __launch_bounds__(256)
fir_tuned_full(const float *x, const float *h, float *y, int n, int taps, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 4096;
    float sum[16];
#pragma unroll
    for (int px = 0; px < 16; ++px) {
        sum[px] = 0;
    }
    __shared__ __align__(16) float x_tile[1][4224];
    __shared__ __align__(16) float h_tile[1][128];
    const int parts = (taps) / 128;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 4224; item += 256) {
            const int row = 0, column = item;
            x_tile[row][column] = x[min(block_x + part * 128 + column, taps + idx_end - 2)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 32; item_ += 256) {
            const int row_ = 0, column_ = item_ * 4;
            *reinterpret_cast<float4*>(&h_tile[row_][column_]) = *reinterpret_cast<const float4*>(&h[part * 128 + column_]);
        }
        __syncthreads();
        for (int i_in = 0; i_in < 128; i_in += 8) {
            __align__(16) float x_part[4][12];
#pragma unroll
            for (int px = 0; px < 16; px += 4) {
#pragma unroll
                for (int c = 0; c < 12; c += 4) {
                    *reinterpret_cast<float4*>(&x_part[px / 4][c]) = *reinterpret_cast<const float4*>(&x_tile[0][px * 256 + thread * 4 + i_in + c]);
                }
            }
            __align__(16) float h_part[8];
#pragma unroll
            for (int c_ = 0; c_ < 8; c_ += 4) {
                *reinterpret_cast<float4*>(&h_part[c_]) = *reinterpret_cast<const float4*>(&h_tile[0][i_in + c_]);
            }
#pragma unroll
            for (int turn = 0; turn < 8; ++turn) {
#pragma unroll
                for (int px = 0; px < 16; ++px) {
                    sum[px] += x_part[px / 4][px % 4 + turn] * h_part[turn];
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int px = 0; px < 16; ++px) {
        const int idx = block_x + px / 4 * 1024 + thread * 4 + px % 4;
        y[idx] = sum[px];
    }
}

__global__ void __launch_bounds__(256)
fir_tuned_wide(const float *x, const float *h, float *y, int n, int taps, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 4096;
    float sum[16];
#pragma unroll
    for (int px = 0; px < 16; ++px) {
        sum[px] = 0;
    }
    __shared__ __align__(16) float x_tile[1][4224];
    __shared__ __align__(16) float h_tile[1][128];
    const int parts = (taps + 127) / 128;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 4224; item += 256) {
            const int row = 0, column = item;
            x_tile[row][column] = x[min(block_x + part * 128 + column, taps + idx_end - 2)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 32; item_ += 256) {
            const int row_ = 0, column_ = item_ * 4;
            *reinterpret_cast<float4*>(&h_tile[row_][column_]) = *reinterpret_cast<const float4*>(&h[min(part * 128 + column_, taps - 4)]);
        }
        __syncthreads();
        const int left = min(128, taps - part * 128);
        int i_in = 0;
        for (; i_in + 8 <= left; i_in += 8) {
            __align__(16) float x_part[4][12];
#pragma unroll
            for (int px = 0; px < 16; px += 4) {
#pragma unroll
                for (int c = 0; c < 12; c += 4) {
                    *reinterpret_cast<float4*>(&x_part[px / 4][c]) = *reinterpret_cast<const float4*>(&x_tile[0][px * 256 + thread * 4 + i_in + c]);
                }
            }
            __align__(16) float h_part[8];
#pragma unroll
            for (int c_ = 0; c_ < 8; c_ += 4) {
                *reinterpret_cast<float4*>(&h_part[c_]) = *reinterpret_cast<const float4*>(&h_tile[0][i_in + c_]);
            }
#pragma unroll
            for (int turn = 0; turn < 8; ++turn) {
#pragma unroll
                for (int px = 0; px < 16; ++px) {
                    sum[px] += x_part[px / 4][px % 4 + turn] * h_part[turn];
                }
            }
        }
        for (; i_in < left; ++i_in) {
            float x_part_[4][4];
#pragma unroll
            for (int px = 0; px < 16; px += 4) {
#pragma unroll
                for (int c__ = 0; c__ < 4; ++c__) {
                    x_part_[px / 4][c__] = x_tile[0][px * 256 + thread * 4 + i_in + c__];
                }
            }
            const float h_part_ = h_tile[0][i_in];
#pragma unroll
            for (int px = 0; px < 16; ++px) {
                sum[px] += x_part_[px / 4][px % 4] * h_part_;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int px = 0; px < 16; ++px) {
        const int idx = block_x + px / 4 * 1024 + thread * 4 + px % 4;
        if (idx < idx_end) {
            y[idx] = sum[px];
        }
    }
}

__global__ void __launch_bounds__(256)
fir_tuned(const float *x, const float *h, float *y, int n, int taps, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 4096;
    float sum[16];
#pragma unroll
    for (int px = 0; px < 16; ++px) {
        sum[px] = 0;
    }
    __shared__ __align__(16) float x_tile[1][4224];
    __shared__ __align__(16) float h_tile[1][128];
    const int parts = (taps + 127) / 128;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 4224; item += 256) {
            const int row = 0, column = item;
            x_tile[row][column] = x[min(block_x + part * 128 + column, taps + idx_end - 2)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 128; item_ += 256) {
            const int row_ = 0, column_ = item_;
            h_tile[row_][column_] = h[min(part * 128 + column_, taps - 1)];
        }
        __syncthreads();
        const int left = min(128, taps - part * 128);
        int i_in = 0;
        for (; i_in + 8 <= left; i_in += 8) {
            __align__(16) float x_part[4][12];
#pragma unroll
            for (int px = 0; px < 16; px += 4) {
#pragma unroll
                for (int c = 0; c < 12; c += 4) {
                    *reinterpret_cast<float4*>(&x_part[px / 4][c]) = *reinterpret_cast<const float4*>(&x_tile[0][px * 256 + thread * 4 + i_in + c]);
                }
            }
            __align__(16) float h_part[8];
#pragma unroll
            for (int c_ = 0; c_ < 8; c_ += 4) {
                *reinterpret_cast<float4*>(&h_part[c_]) = *reinterpret_cast<const float4*>(&h_tile[0][i_in + c_]);
            }
#pragma unroll
            for (int turn = 0; turn < 8; ++turn) {
#pragma unroll
                for (int px = 0; px < 16; ++px) {
                    sum[px] += x_part[px / 4][px % 4 + turn] * h_part[turn];
                }
            }
        }
        for (; i_in < left; ++i_in) {
            float x_part_[4][4];
#pragma unroll
            for (int px = 0; px < 16; px += 4) {
#pragma unroll
                for (int c__ = 0; c__ < 4; ++c__) {
                    x_part_[px / 4][c__] = x_tile[0][px * 256 + thread * 4 + i_in + c__];
                }
            }
            const float h_part_ = h_tile[0][i_in];
#pragma unroll
            for (int px = 0; px < 16; ++px) {
                sum[px] += x_part_[px / 4][px % 4] * h_part_;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int px = 0; px < 16; ++px) {
        const int idx = block_x + px / 4 * 1024 + thread * 4 + px % 4;
        if (idx < idx_end) {
            y[idx] = sum[px];
        }
    }
}

static inline cudaError_t fir_try(dim3 grid, dim3 block, const float *x, const float *h, float *y, int n, int taps, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (n < 0 ||
        taps < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid.x * block.x;
    if (idx_end > (long long)n) idx_end = (long long)n;
    if (idx_end <= 0 ||
        idx_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)n > 2147483647.0 ||
        (double)taps + (double)idx_end - 2 > 2147483647.0 ||
        (double)taps - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long x_first = 0;
    long long x_last = (long long)taps + (long long)idx_end - 2;
    long long h_first = 0;
    long long h_last = (long long)taps - 1;
    long long y_first = 0;
    long long y_last = (long long)idx_end - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4) ||
        ((const char*)(h + h_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(h + h_last) + 4)) return cudaErrorNotSupported;
    if (((long long)idx_end) % 4096 == 0 &&
        ((long long)taps) % 128 == 0 &&
        (size_t)h % 16 == 0) {
        fir_tuned_full<<<dim3((unsigned)((idx_end + 4095) / 4096), (unsigned)(1), (unsigned)(1)), 256, 0, stream_>>>(
            x, h, y, n, taps, (int)idx_end);
        return cudaPeekAtLastError();
    }
    if (((long long)taps) % 4 == 0 &&
        (size_t)h % 16 == 0) {
        fir_tuned_wide<<<dim3((unsigned)((idx_end + 4095) / 4096), (unsigned)(1), (unsigned)(1)), 256, 0, stream_>>>(
            x, h, y, n, taps, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        fir_tuned<<<dim3((unsigned)((idx_end + 4095) / 4096), (unsigned)(1), (unsigned)(1)), 256, 0, stream_>>>(
            x, h, y, n, taps, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of fir<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void fir_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *x, const float *h, float *y, int n, int taps)
{
    if (fir_try(grid, block, x, h, y, n, taps, stream_) == cudaErrorNotSupported)
        fir<<<grid, block, shared, stream_>>>(x, h, y, n, taps);
}

}  // extern "C++"


extern "C" void run_fir(const float *x, const float *h, float *y, int n, int taps, cudaStream_t stream) {
    fir_launch((n + 255) / 256, 256, 0, stream, x, h, y, n, taps);
}
