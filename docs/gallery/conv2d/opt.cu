// Two-dimensional convolution with channels, a filter of 3 x 3 and a bias: out[o][y][x] from
// in[c][y + i][x + j] and w[o][c][i][j].

#pragma warpwright naive sizes(outs=64, ins=64, m=224, n=224) outputs(out)
extern "C" __global__ void conv2d(const float *in, const float *w, const float *bias, float *out, int outs, int ins,
                                  int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    int idz = blockIdx.z;
    if (idx >= n || idy >= m || idz >= outs) return;
    float sum = bias[idz];
    for (int c = 0; c < ins; c++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                sum += in[(c * (m + 2) + idy + i) * (n + 2) + idx + j] * w[((idz * ins + c) * 3 + i) * 3 + j];
    out[(idz * m + idy) * n + idx] = sum;
}

extern "C++" {

// block merge (section 3.5.1): a block of 256 threads computes 128 x 32 points
// thread merge (section 3.5.2): a thread computes 4 x 4 points, and what they share is loaded once; 4 x 1 of them are neighbours
// coalescing (section 3.3): 8 turns of the loop at a time, operands in shared memory, 16 turns written out
// the expected small sizes are constants in kernels of their own
// `in`: 272 x 132 elements a part in shared memory
// `w`: 1 x 72 elements a part in shared memory
__global__ void __launch_bounds__(256)
conv2d_tuned_fixed_full(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 32;
    const int thread_y = thread / 32;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 32;
    const int idz = blockIdx.z;
    const float bias_own = bias[idz];
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*in_tile)[132] = reinterpret_cast<float (*)[132]>(shared + 0);
    float (*w_tile)[72] = reinterpret_cast<float (*)[72]>(shared + 143616);
    const int parts = (64) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 35904; item += 256) {
            const int row = item / 132, column = item % 132;
            in_tile[row][column] = in[(part * 8 + row / 34) * (m * n + 2 * m + 2 * n + 4) + (block_y + row % 34) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 72; item_ += 256) {
            const int row_ = 0, column_ = item_;
            w_tile[row_][column_] = w[(part * 8) * 9 + 576 * idz + column_];
        }
        __syncthreads();
        for (int c_in = 0; c_in < 8; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[4][6];
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int c_ = 0; c_ < 6; ++c_) {
                            in_part[py][c_] = in_tile[c_in * 34 + py * 8 + thread_y + i_in][thread_x * 4 + j_in + c_];
                        }
                    }
                    float w_part[3];
#pragma unroll
                    for (int c__ = 0; c__ < 3; ++c__) {
                        w_part[c__] = w_tile[0][c_in * 9 + i_in * 3 + j_in + c__];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
#pragma unroll
                        for (int py = 0; py < 4; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[py][px + turn] * w_part[turn];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            out[m * n * idz + n * idy + idx] = sum[py][px];
        }
    }
}

__global__ void __launch_bounds__(256)
conv2d_tuned_fixed_wide(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 32;
    const int thread_y = thread / 32;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 32;
    const int idz = blockIdx.z;
    const float bias_own = bias[idz];
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*in_tile)[132] = reinterpret_cast<float (*)[132]>(shared + 0);
    float (*w_tile)[72] = reinterpret_cast<float (*)[72]>(shared + 143616);
    const int parts = (64 + 7) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 35904; item += 256) {
            const int row = item / 132, column = item % 132;
            in_tile[row][column] = in[min(part * 8 + row / 34, 63) * (m * n + 2 * m + 2 * n + 4) + min(block_y + row % 34, idy_end + 1) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 72; item_ += 256) {
            const int row_ = 0, column_ = item_;
            w_tile[row_][column_] = w[min((part * 8) * 9 + 576 * idz + column_, 576 * idz + 575)];
        }
        __syncthreads();
        const int left = min(8, 64 - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[4][6];
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int c_ = 0; c_ < 6; ++c_) {
                            in_part[py][c_] = in_tile[c_in * 34 + py * 8 + thread_y + i_in][thread_x * 4 + j_in + c_];
                        }
                    }
                    float w_part[3];
#pragma unroll
                    for (int c__ = 0; c__ < 3; ++c__) {
                        w_part[c__] = w_tile[0][c_in * 9 + i_in * 3 + j_in + c__];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
#pragma unroll
                        for (int py = 0; py < 4; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[py][px + turn] * w_part[turn];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idy < idy_end) {
                out[m * n * idz + n * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(256)
conv2d_tuned_full(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 32;
    const int thread_y = thread / 32;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 32;
    const int idz = blockIdx.z;
    const float bias_own = bias[idz];
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*in_tile)[132] = reinterpret_cast<float (*)[132]>(shared + 0);
    float (*w_tile)[72] = reinterpret_cast<float (*)[72]>(shared + 143616);
    const int parts = (ins) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 35904; item += 256) {
            const int row = item / 132, column = item % 132;
            in_tile[row][column] = in[(part * 8 + row / 34) * (m * n + 2 * m + 2 * n + 4) + (block_y + row % 34) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 18; item_ += 256) {
            const int row_ = 0, column_ = item_ * 4;
            *reinterpret_cast<float4*>(&w_tile[row_][column_]) = *reinterpret_cast<const float4*>(&w[9 * ins * idz + (part * 8) * 9 + column_]);
        }
        __syncthreads();
        for (int c_in = 0; c_in < 8; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[4][6];
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int c_ = 0; c_ < 6; ++c_) {
                            in_part[py][c_] = in_tile[c_in * 34 + py * 8 + thread_y + i_in][thread_x * 4 + j_in + c_];
                        }
                    }
                    float w_part[3];
#pragma unroll
                    for (int c__ = 0; c__ < 3; ++c__) {
                        w_part[c__] = w_tile[0][c_in * 9 + i_in * 3 + j_in + c__];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
#pragma unroll
                        for (int py = 0; py < 4; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[py][px + turn] * w_part[turn];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            out[m * n * idz + n * idy + idx] = sum[py][px];
        }
    }
}

__global__ void __launch_bounds__(256)
conv2d_tuned_wide(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 32;
    const int thread_y = thread / 32;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 32;
    const int idz = blockIdx.z;
    const float bias_own = bias[idz];
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*in_tile)[132] = reinterpret_cast<float (*)[132]>(shared + 0);
    float (*w_tile)[72] = reinterpret_cast<float (*)[72]>(shared + 143616);
    const int parts = (ins + 7) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 35904; item += 256) {
            const int row = item / 132, column = item % 132;
            in_tile[row][column] = in[min(part * 8 + row / 34, ins - 1) * (m * n + 2 * m + 2 * n + 4) + min(block_y + row % 34, idy_end + 1) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 18; item_ += 256) {
            const int row_ = 0, column_ = item_ * 4;
            *reinterpret_cast<float4*>(&w_tile[row_][column_]) = *reinterpret_cast<const float4*>(&w[9 * ins * idz + min((part * 8) * 9 + column_, 9 * ins - 4)]);
        }
        __syncthreads();
        const int left = min(8, ins - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[4][6];
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int c_ = 0; c_ < 6; ++c_) {
                            in_part[py][c_] = in_tile[c_in * 34 + py * 8 + thread_y + i_in][thread_x * 4 + j_in + c_];
                        }
                    }
                    float w_part[3];
#pragma unroll
                    for (int c__ = 0; c__ < 3; ++c__) {
                        w_part[c__] = w_tile[0][c_in * 9 + i_in * 3 + j_in + c__];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
#pragma unroll
                        for (int py = 0; py < 4; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[py][px + turn] * w_part[turn];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idy < idy_end) {
                out[m * n * idz + n * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(256)
conv2d_tuned(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 32;
    const int thread_y = thread / 32;
    const int block_x = blockIdx.x * 128;
    const int block_y = blockIdx.y * 32;
    const int idz = blockIdx.z;
    const float bias_own = bias[idz];
    float sum[4][4];
#pragma unroll
    for (int py = 0; py < 4; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own;
        }
    }
    extern __shared__ __align__(16) unsigned char shared[];
    float (*in_tile)[132] = reinterpret_cast<float (*)[132]>(shared + 0);
    float (*w_tile)[72] = reinterpret_cast<float (*)[72]>(shared + 143616);
    const int parts = (ins + 7) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 35904; item += 256) {
            const int row = item / 132, column = item % 132;
            in_tile[row][column] = in[min(part * 8 + row / 34, ins - 1) * (m * n + 2 * m + 2 * n + 4) + min(block_y + row % 34, idy_end + 1) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 72; item_ += 256) {
            const int row_ = 0, column_ = item_;
            w_tile[row_][column_] = w[9 * ins * idz + min((part * 8) * 9 + column_, 9 * ins - 1)];
        }
        __syncthreads();
        const int left = min(8, ins - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[4][6];
#pragma unroll
                    for (int py = 0; py < 4; ++py) {
#pragma unroll
                        for (int c_ = 0; c_ < 6; ++c_) {
                            in_part[py][c_] = in_tile[c_in * 34 + py * 8 + thread_y + i_in][thread_x * 4 + j_in + c_];
                        }
                    }
                    float w_part[3];
#pragma unroll
                    for (int c__ = 0; c__ < 3; ++c__) {
                        w_part[c__] = w_tile[0][c_in * 9 + i_in * 3 + j_in + c__];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
#pragma unroll
                        for (int py = 0; py < 4; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[py][px + turn] * w_part[turn];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 4; ++py) {
        const int idy = block_y + py * 8 + thread_y;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idy < idy_end) {
                out[m * n * idz + n * idy + idx] = sum[py][px];
            }
        }
    }
}

static inline cudaError_t conv2d_try(dim3 grid_, dim3 block_, const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (block_.z != 1) return cudaErrorNotSupported;
    if (outs < 0 ||
        ins < 0 ||
        m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid_.x * block_.x;
    if (idx_end > (long long)n) idx_end = (long long)n;
    long long idy_end = (long long)grid_.y * block_.y;
    if (idy_end > (long long)m) idy_end = (long long)m;
    long long idz_end = (long long)grid_.z;
    if (idz_end > (long long)outs) idz_end = (long long)outs;
    if (idx_end <= 0 ||
        idx_end > 2147352576 ||
        idy_end <= 0 ||
        idy_end > 2147352576 ||
        idz_end <= 0 ||
        idz_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)idx_end - 1 > 2147483647.0 ||
        (double)idy_end - 1 > 2147483647.0 ||
        (double)outs > 2147483647.0 ||
        (double)m + 2 > 2147483647.0 ||
        (double)ins * (double)m + 2 * (double)ins + (double)idy_end - (double)m - 1 > 2147483647.0 ||
        (double)n + 2 > 2147483647.0 ||
        (double)ins * (double)m * (double)n + 2 * (double)ins * (double)m + 2 * (double)ins * (double)n + (double)n * (double)idy_end + 4 * (double)ins + (double)idx_end + 2 * (double)idy_end - (double)m * (double)n - 2 * (double)m - (double)n - 1 > 2147483647.0 ||
        (double)idz_end - 1 > 2147483647.0 ||
        9 * (double)ins * (double)idz_end - 1 > 2147483647.0 ||
        (double)m * (double)n * (double)idz_end + (double)n * (double)idy_end + (double)idx_end - (double)m * (double)n - (double)n - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long in_first = 0;
    long long in_last = (long long)ins * (long long)m * (long long)n + 2 * (long long)ins * (long long)m + 2 * (long long)ins * (long long)n + (long long)n * (long long)idy_end + 4 * (long long)ins + (long long)idx_end + 2 * (long long)idy_end - (long long)m * (long long)n - 2 * (long long)m - (long long)n - 1;
    long long w_first = 0;
    long long w_last = 9 * (long long)ins * (long long)idz_end - 1;
    long long bias_first = 0;
    long long bias_last = (long long)idz_end - 1;
    long long out_first = 0;
    long long out_last = (long long)m * (long long)n * (long long)idz_end + (long long)n * (long long)idy_end + (long long)idx_end - (long long)m * (long long)n - (long long)n - 1;
    if (((const char*)(in + in_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(in + in_last) + 4) ||
        ((const char*)(w + w_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(w + w_last) + 4) ||
        ((const char*)(bias + bias_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(bias + bias_last) + 4)) return cudaErrorNotSupported;
    if (((long long)idx_end) % 128 == 0 &&
        ((long long)idy_end) % 32 == 0 &&
        ins == 64) {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        if (idz_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(conv2d_tuned_fixed_full, cudaFuncAttributeMaxDynamicSharedMemorySize, 143904) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        conv2d_tuned_fixed_full<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 31) / 32), (unsigned)(idz_end)), 256, 143904, stream_>>>(
            in, w, bias, out, outs, ins, m, n, (int)idx_end, (int)idy_end, (int)idz_end);
        return cudaPeekAtLastError();
    }
    if (ins == 64) {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        if (idz_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(conv2d_tuned_fixed_wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 143904) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        conv2d_tuned_fixed_wide<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 31) / 32), (unsigned)(idz_end)), 256, 143904, stream_>>>(
            in, w, bias, out, outs, ins, m, n, (int)idx_end, (int)idy_end, (int)idz_end);
        return cudaPeekAtLastError();
    }
    if (((long long)idx_end) % 128 == 0 &&
        ((long long)idy_end) % 32 == 0 &&
        ((long long)ins) % 8 == 0 &&
        (9 * (long long)ins) % 4 == 0 &&
        (size_t)w % 16 == 0) {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        if (idz_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(conv2d_tuned_full, cudaFuncAttributeMaxDynamicSharedMemorySize, 143904) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        conv2d_tuned_full<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 31) / 32), (unsigned)(idz_end)), 256, 143904, stream_>>>(
            in, w, bias, out, outs, ins, m, n, (int)idx_end, (int)idy_end, (int)idz_end);
        return cudaPeekAtLastError();
    }
    if ((9 * (long long)ins) % 4 == 0 &&
        (size_t)w % 16 == 0) {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        if (idz_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(conv2d_tuned_wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 143904) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        conv2d_tuned_wide<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 31) / 32), (unsigned)(idz_end)), 256, 143904, stream_>>>(
            in, w, bias, out, outs, ins, m, n, (int)idx_end, (int)idy_end, (int)idz_end);
        return cudaPeekAtLastError();
    }
    {
        if ((idy_end + 31) / 32 > 65535) return cudaErrorNotSupported;
        if (idz_end > 65535) return cudaErrorNotSupported;
        if (cudaFuncSetAttribute(conv2d_tuned, cudaFuncAttributeMaxDynamicSharedMemorySize, 143904) != cudaSuccess) {
            cudaGetLastError();
            return cudaErrorNotSupported;
        }
        conv2d_tuned<<<dim3((unsigned)((idx_end + 127) / 128), (unsigned)((idy_end + 31) / 32), (unsigned)(idz_end)), 256, 143904, stream_>>>(
            in, w, bias, out, outs, ins, m, n, (int)idx_end, (int)idy_end, (int)idz_end);
        return cudaPeekAtLastError();
    }
}

// In place of conv2d<<<grid_, block_, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void conv2d_launch(dim3 grid_, dim3 block_, size_t shared, cudaStream_t stream_, const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n)
{
    if (conv2d_try(grid_, block_, in, w, bias, out, outs, ins, m, n, stream_) == cudaErrorNotSupported)
        conv2d<<<grid_, block_, shared, stream_>>>(in, w, bias, out, outs, ins, m, n);
}

}  // extern "C++"


extern "C" void run_conv2d(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m,
                           int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16, outs);
    conv2d_launch(grid, block, 0, stream, in, w, bias, out, outs, ins, m, n);
}
