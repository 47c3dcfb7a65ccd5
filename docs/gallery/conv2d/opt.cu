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

// block merge: a block of 128 threads computes 64 x 64 points
// thread merge: a thread computes 4 x 8 points, and what they share is loaded once; 4 x 4 of them are neighbours
// coalescing: 8 turns of the loop at a time, operands in shared memory, 8 turns written out
// rows along the loop are turned while they are copied
// tiles lie along x and z, whose planes share operands
// the expected small sizes are constants in kernels of their own
// `in`: 24 x 68 elements a part in shared memory
// `w`: 72 x 64 elements a part in shared memory
__global__ void __launch_bounds__(128)
conv2d_tuned_fixed_wide(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 64;
    const int block_y = blockIdx.z * 64;
    const int idy = blockIdx.y;
    float bias_own[8];
#pragma unroll
    for (int py = 0; py < 8; ++py) {
        const int idz = min(block_y + py / 4 * 32 + thread_y * 4 + py % 4, idz_end - 1);
        bias_own[py] = bias[idz];
    }
    float sum[8][4];
#pragma unroll
    for (int py = 0; py < 8; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own[py];
        }
    }
    __shared__ __align__(16) float in_tile[24][68];
    __shared__ __align__(16) float w_tile[72][68];
    const int parts = (64 + 7) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 1632; item += 128) {
            const int row = item / 68, column = item % 68;
            in_tile[row][column] = in[min(part * 8 + row / 3, 63) * (m * n + 2 * m + 2 * n + 4) + (idy + row % 3) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 4608; item_ += 128) {
            const int row_ = item_ / 32 % 9 * 8 + item_ % 8, column_ = item_ / 288 * 4 + item_ / 8 % 4;
            w_tile[row_][column_] = w[min((part * 8) * 9 + row_, 575) + min(block_y + column_, idz_end - 1) * 576];
        }
        __syncthreads();
        const int left = min(8, 64 - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[6];
#pragma unroll
                    for (int c_ = 0; c_ < 6; ++c_) {
                        in_part[c_] = in_tile[c_in * 3 + i_in][thread_x * 4 + j_in + c_];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
                        __align__(16) float w_part[2][4];
#pragma unroll
                        for (int py = 0; py < 8; py += 4) {
                            *reinterpret_cast<float4*>(&w_part[py / 4][0]) = *reinterpret_cast<const float4*>(&w_tile[c_in * 9 + i_in * 3 + (j_in + turn)][py * 8 + thread_y * 4]);
                        }
#pragma unroll
                        for (int py = 0; py < 8; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[px + turn] * w_part[py / 4][py % 4];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 8; ++py) {
        const int idz = block_y + py / 4 * 32 + thread_y * 4 + py % 4;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idz < idz_end) {
                out[m * n * idz + n * idy + idx] = sum[py][px];
            }
        }
    }
}

__global__ void __launch_bounds__(128)
conv2d_tuned_wide(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m, int n, int idx_end, int idy_end, int idz_end)
{
    const int thread = threadIdx.x;
    const int thread_x = thread % 16;
    const int thread_y = thread / 16;
    const int block_x = blockIdx.x * 64;
    const int block_y = blockIdx.z * 64;
    const int idy = blockIdx.y;
    float bias_own[8];
#pragma unroll
    for (int py = 0; py < 8; ++py) {
        const int idz = min(block_y + py / 4 * 32 + thread_y * 4 + py % 4, idz_end - 1);
        bias_own[py] = bias[idz];
    }
    float sum[8][4];
#pragma unroll
    for (int py = 0; py < 8; ++py) {
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            sum[py][px] = bias_own[py];
        }
    }
    __shared__ __align__(16) float in_tile[24][68];
    __shared__ __align__(16) float w_tile[72][68];
    const int parts = (ins + 7) / 8;
    for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int item = thread; item < 1632; item += 128) {
            const int row = item / 68, column = item % 68;
            in_tile[row][column] = in[min(part * 8 + row / 3, ins - 1) * (m * n + 2 * m + 2 * n + 4) + (idy + row % 3) * (n + 2) + min(block_x + column, idx_end + 1)];
        }
#pragma unroll
        for (int item_ = thread; item_ < 4608; item_ += 128) {
            const int row_ = item_ / 32 % 9 * 8 + item_ % 8, column_ = item_ / 288 * 4 + item_ / 8 % 4;
            w_tile[row_][column_] = w[min((part * 8) * 9 + row_, 9 * ins - 1) + min(block_y + column_, idz_end - 1) * (9 * ins)];
        }
        __syncthreads();
        const int left = min(8, ins - part * 8);
        for (int c_in = 0; c_in < left; ++c_in) {
            for (int i_in = 0; i_in < 3; ++i_in) {
#pragma unroll
                for (int j_in = 0; j_in < 3; j_in += 3) {
                    float in_part[6];
#pragma unroll
                    for (int c_ = 0; c_ < 6; ++c_) {
                        in_part[c_] = in_tile[c_in * 3 + i_in][thread_x * 4 + j_in + c_];
                    }
#pragma unroll
                    for (int turn = 0; turn < 3; ++turn) {
                        __align__(16) float w_part[2][4];
#pragma unroll
                        for (int py = 0; py < 8; py += 4) {
                            *reinterpret_cast<float4*>(&w_part[py / 4][0]) = *reinterpret_cast<const float4*>(&w_tile[c_in * 9 + i_in * 3 + (j_in + turn)][py * 8 + thread_y * 4]);
                        }
#pragma unroll
                        for (int py = 0; py < 8; ++py) {
#pragma unroll
                            for (int px = 0; px < 4; ++px) {
                                sum[py][px] += in_part[px + turn] * w_part[py / 4][py % 4];
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int py = 0; py < 8; ++py) {
        const int idz = block_y + py / 4 * 32 + thread_y * 4 + py % 4;
#pragma unroll
        for (int px = 0; px < 4; ++px) {
            const int idx = block_x + thread_x * 4 + px;
            if (idx < idx_end && idz < idz_end) {
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
    if (ins == 64) {
        if (idy_end > 65535) return cudaErrorNotSupported;
        if ((idz_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv2d_tuned_fixed_wide<<<dim3((unsigned)((idx_end + 63) / 64), (unsigned)(idy_end), (unsigned)((idz_end + 63) / 64)), 128, 0, stream_>>>(
            in, w, bias, out, outs, ins, m, n, (int)idx_end, (int)idy_end, (int)idz_end);
        return cudaPeekAtLastError();
    }
    {
        if (idy_end > 65535) return cudaErrorNotSupported;
        if ((idz_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        conv2d_tuned_wide<<<dim3((unsigned)((idx_end + 63) / 64), (unsigned)(idy_end), (unsigned)((idz_end + 63) / 64)), 128, 0, stream_>>>(
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
