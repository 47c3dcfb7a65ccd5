// The squared distances to the four nearest points of a set, in three dimensions.

#include <cuda_pipeline.h>

#pragma warpwright naive sizes(m=16384, n=16384) outputs(out)
extern "C" __global__ void nearest4(const float *queries, const float *points, float *out, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= m) return;
    float x = queries[3 * idx], y = queries[3 * idx + 1], z = queries[3 * idx + 2];
    float first = 1e30f, second = 1e30f, third = 1e30f, fourth = 1e30f;
    for (int i = 0; i < n; i++) {
        float dx = points[3 * i] - x;
        float dy = points[3 * i + 1] - y;
        float dz = points[3 * i + 2] - z;
        float d = dx * dx + dy * dy + dz * dz;
        fourth = fminf(fourth, fmaxf(third, d));
        third = fminf(third, fmaxf(second, d));
        second = fminf(second, fmaxf(first, d));
        first = fminf(first, d);
    }
    out[4 * idx] = first;
    out[4 * idx + 1] = second;
    out[4 * idx + 2] = third;
    out[4 * idx + 3] = fourth;
}

extern "C++" {

// block merge: a block of 32 threads computes 32 points
// coalescing: 128 turns of the loop at a time, operands in shared memory, 4 turns written out
// prefetching: 3 parts in flight by cp.async, no registers for it
// `points`: 1 x 384 elements a part in shared memory
__global__ void __launch_bounds__(32)
nearest4_tuned_full(const float *queries, const float *points, float *out, int m, int n, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 32;
    float x;
    float y;
    float z;
    float first;
    float second;
    float third;
    float fourth;
    {
        const int idx = block_x + thread;
        x = queries[3 * idx];
        y = queries[3 * idx + 1];
        z = queries[3 * idx + 2];
        first = 1e30f;
        second = 1e30f;
        third = 1e30f;
        fourth = 1e30f;
    }
    __shared__ __align__(16) float points_tile[4][1][384];
    const int parts = (n) / 128;
    const int points_row = 0, points_column = thread * 4;
    const float* points_from = points + (0 + points_column);
    for (int part = 0; part < 3; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = 0; item < 3; ++item) {
                __pipeline_memcpy_async(&points_tile[part % 4][points_row][points_column + item * 128], points_from + part * (384) + item * (128), 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (part + 3 < parts) {
#pragma unroll
            for (int item = 0; item < 3; ++item) {
                __pipeline_memcpy_async(&points_tile[(part + 3) % 4][points_row][points_column + item * 128], points_from + (part + 3) * (384) + item * (128), 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 4;
        for (int i_in = 0; i_in < 128; i_in += 4) {
            __align__(16) float points_part[12];
#pragma unroll
            for (int c = 0; c < 12; c += 4) {
                *reinterpret_cast<float4*>(&points_part[c]) = *reinterpret_cast<const float4*>(&points_tile[buffer][0][i_in * 3 + c]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                float dx = points_part[turn * 3] - x;
                float dy = points_part[turn * 3 + 1] - y;
                float dz = points_part[turn * 3 + 2] - z;
                float d = dx * dx + dy * dy + dz * dz;
                fourth = fminf(fourth, fmaxf(third, d));
                third = fminf(third, fmaxf(second, d));
                second = fminf(second, fmaxf(first, d));
                first = fminf(first, d);
            }
        }
    }
    {
        const int idx = block_x + thread;
        out[4 * idx] = first;
        out[4 * idx + 1] = second;
        out[4 * idx + 2] = third;
        out[4 * idx + 3] = fourth;
    }
}

__global__ void __launch_bounds__(32)
nearest4_tuned_wide(const float *queries, const float *points, float *out, int m, int n, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 32;
    float x;
    float y;
    float z;
    float first;
    float second;
    float third;
    float fourth;
    {
        const int idx = min(block_x + thread, idx_end - 1);
        x = queries[3 * idx];
        y = queries[3 * idx + 1];
        z = queries[3 * idx + 2];
        first = 1e30f;
        second = 1e30f;
        third = 1e30f;
        fourth = 1e30f;
    }
    __shared__ __align__(16) float points_tile[4][1][384];
    const int parts = (n + 127) / 128;
    for (int part = 0; part < 3; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 96; item += 32) {
                const int row = 0, column = item * 4;
                __pipeline_memcpy_async(&points_tile[part % 4][row][column], &points[min((part * 128) * 3 + column, 3 * n - 4)], 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (part + 3 < parts) {
#pragma unroll
            for (int item = thread; item < 96; item += 32) {
                const int row = 0, column = item * 4;
                __pipeline_memcpy_async(&points_tile[(part + 3) % 4][row][column], &points[min(((part + 3) * 128) * 3 + column, 3 * n - 4)], 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 4;
        const int left = min(128, n - part * 128);
        int i_in = 0;
        for (; i_in + 4 <= left; i_in += 4) {
            __align__(16) float points_part[12];
#pragma unroll
            for (int c = 0; c < 12; c += 4) {
                *reinterpret_cast<float4*>(&points_part[c]) = *reinterpret_cast<const float4*>(&points_tile[buffer][0][i_in * 3 + c]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                float dx = points_part[turn * 3] - x;
                float dy = points_part[turn * 3 + 1] - y;
                float dz = points_part[turn * 3 + 2] - z;
                float d = dx * dx + dy * dy + dz * dz;
                fourth = fminf(fourth, fmaxf(third, d));
                third = fminf(third, fmaxf(second, d));
                second = fminf(second, fmaxf(first, d));
                first = fminf(first, d);
            }
        }
        for (; i_in < left; ++i_in) {
            float points_part_[3];
#pragma unroll
            for (int c_ = 0; c_ < 3; ++c_) {
                points_part_[c_] = points_tile[buffer][0][i_in * 3 + c_];
            }
            float dx = points_part_[0] - x;
            float dy = points_part_[1] - y;
            float dz = points_part_[2] - z;
            float d = dx * dx + dy * dy + dz * dz;
            fourth = fminf(fourth, fmaxf(third, d));
            third = fminf(third, fmaxf(second, d));
            second = fminf(second, fmaxf(first, d));
            first = fminf(first, d);
        }
    }
    {
        const int idx = block_x + thread;
        if (idx < idx_end) {
            out[4 * idx] = first;
            out[4 * idx + 1] = second;
            out[4 * idx + 2] = third;
            out[4 * idx + 3] = fourth;
        }
    }
}

__global__ void __launch_bounds__(32)
nearest4_tuned(const float *queries, const float *points, float *out, int m, int n, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 32;
    float x;
    float y;
    float z;
    float first;
    float second;
    float third;
    float fourth;
    {
        const int idx = min(block_x + thread, idx_end - 1);
        x = queries[3 * idx];
        y = queries[3 * idx + 1];
        z = queries[3 * idx + 2];
        first = 1e30f;
        second = 1e30f;
        third = 1e30f;
        fourth = 1e30f;
    }
    __shared__ __align__(16) float points_tile[4][1][384];
    const int parts = (n + 127) / 128;
    for (int part = 0; part < 3; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 384; item += 32) {
                const int row = 0, column = item;
                __pipeline_memcpy_async(&points_tile[part % 4][row][column], &points[min((part * 128) * 3 + column, 3 * n - 1)], 4);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (part + 3 < parts) {
#pragma unroll
            for (int item = thread; item < 384; item += 32) {
                const int row = 0, column = item;
                __pipeline_memcpy_async(&points_tile[(part + 3) % 4][row][column], &points[min(((part + 3) * 128) * 3 + column, 3 * n - 1)], 4);
            }
        }
        __pipeline_commit();
        const int buffer = part % 4;
        const int left = min(128, n - part * 128);
        int i_in = 0;
        for (; i_in + 4 <= left; i_in += 4) {
            __align__(16) float points_part[12];
#pragma unroll
            for (int c = 0; c < 12; c += 4) {
                *reinterpret_cast<float4*>(&points_part[c]) = *reinterpret_cast<const float4*>(&points_tile[buffer][0][i_in * 3 + c]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                float dx = points_part[turn * 3] - x;
                float dy = points_part[turn * 3 + 1] - y;
                float dz = points_part[turn * 3 + 2] - z;
                float d = dx * dx + dy * dy + dz * dz;
                fourth = fminf(fourth, fmaxf(third, d));
                third = fminf(third, fmaxf(second, d));
                second = fminf(second, fmaxf(first, d));
                first = fminf(first, d);
            }
        }
        for (; i_in < left; ++i_in) {
            float points_part_[3];
#pragma unroll
            for (int c_ = 0; c_ < 3; ++c_) {
                points_part_[c_] = points_tile[buffer][0][i_in * 3 + c_];
            }
            float dx = points_part_[0] - x;
            float dy = points_part_[1] - y;
            float dz = points_part_[2] - z;
            float d = dx * dx + dy * dy + dz * dz;
            fourth = fminf(fourth, fmaxf(third, d));
            third = fminf(third, fmaxf(second, d));
            second = fminf(second, fmaxf(first, d));
            first = fminf(first, d);
        }
    }
    {
        const int idx = block_x + thread;
        if (idx < idx_end) {
            out[4 * idx] = first;
            out[4 * idx + 1] = second;
            out[4 * idx + 2] = third;
            out[4 * idx + 3] = fourth;
        }
    }
}

static inline cudaError_t nearest4_try(dim3 grid, dim3 block, const float *queries, const float *points, float *out, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long idx_end = (long long)grid.x * block.x;
    if (idx_end > (long long)m) idx_end = (long long)m;
    if (idx_end <= 0 ||
        idx_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)m > 2147483647.0 ||
        3 * (double)n - 1 > 2147483647.0 ||
        4 * (double)idx_end - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long queries_first = 0;
    if (1 < queries_first) queries_first = 1;
    if (2 < queries_first) queries_first = 2;
    long long queries_last = 3 * (long long)idx_end - 3;
    if (3 * (long long)idx_end - 2 > queries_last) queries_last = 3 * (long long)idx_end - 2;
    if (3 * (long long)idx_end - 1 > queries_last) queries_last = 3 * (long long)idx_end - 1;
    long long points_first = 0;
    if (1 < points_first) points_first = 1;
    if (2 < points_first) points_first = 2;
    long long points_last = 3 * (long long)n - 3;
    if (3 * (long long)n - 2 > points_last) points_last = 3 * (long long)n - 2;
    if (3 * (long long)n - 1 > points_last) points_last = 3 * (long long)n - 1;
    long long out_first = 0;
    if (1 < out_first) out_first = 1;
    if (2 < out_first) out_first = 2;
    if (3 < out_first) out_first = 3;
    long long out_last = 4 * (long long)idx_end - 4;
    if (4 * (long long)idx_end - 3 > out_last) out_last = 4 * (long long)idx_end - 3;
    if (4 * (long long)idx_end - 2 > out_last) out_last = 4 * (long long)idx_end - 2;
    if (4 * (long long)idx_end - 1 > out_last) out_last = 4 * (long long)idx_end - 1;
    if (((const char*)(queries + queries_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(queries + queries_last) + 4) ||
        ((const char*)(points + points_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(points + points_last) + 4)) return cudaErrorNotSupported;
    if (((long long)idx_end) % 32 == 0 &&
        ((long long)n) % 128 == 0 &&
        (size_t)points % 16 == 0) {
        nearest4_tuned_full<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 32, 0, stream_>>>(
            queries, points, out, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    if ((3 * (long long)n) % 4 == 0 &&
        (size_t)points % 16 == 0) {
        nearest4_tuned_wide<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 32, 0, stream_>>>(
            queries, points, out, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        nearest4_tuned<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 32, 0, stream_>>>(
            queries, points, out, m, n, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of nearest4<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void nearest4_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *queries, const float *points, float *out, int m, int n)
{
    if (nearest4_try(grid, block, queries, points, out, m, n, stream_) == cudaErrorNotSupported)
        nearest4<<<grid, block, shared, stream_>>>(queries, points, out, m, n);
}

}  // extern "C++"


extern "C" void run_nearest4(const float *queries, const float *points, float *out, int m, int n,
                             cudaStream_t stream) {
    nearest4_launch((m + 255) / 256, 256, 0, stream, queries, points, out, m, n);
}
