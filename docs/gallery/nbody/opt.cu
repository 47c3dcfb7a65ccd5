// The accelerations of bodies by their gravity: position and mass in fours, softened.

#include <cuda_pipeline.h>

#pragma warpwright naive sizes(n=32768) outputs(acceleration)
extern "C" __global__ void nbody(const float *body, float *acceleration, int n, float softening) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float x = body[4 * idx], y = body[4 * idx + 1], z = body[4 * idx + 2];
    float ax = 0, ay = 0, az = 0;
    for (int i = 0; i < n; i++) {
        float dx = body[4 * i] - x;
        float dy = body[4 * i + 1] - y;
        float dz = body[4 * i + 2] - z;
        float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
        float pull = body[4 * i + 3] * inverse * inverse * inverse;
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    acceleration[3 * idx] = ax;
    acceleration[3 * idx + 1] = ay;
    acceleration[3 * idx + 2] = az;
}

extern "C++" {

// block merge: a block of 32 threads computes 32 points
// coalescing: 128 turns of the loop at a time, operands in shared memory, 4 turns written out
// prefetching: 3 parts in flight by cp.async, no registers for it
// `body`: 1 x 512 elements a part in shared memory
__global__ void __launch_bounds__(32)
nbody_tuned_full(const float *body, float *acceleration, int n, float softening, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 32;
    float x;
    float y;
    float z;
    float ax;
    float ay;
    float az;
    {
        const int idx = block_x + thread;
        x = body[4 * idx];
        y = body[4 * idx + 1];
        z = body[4 * idx + 2];
        ax = 0;
        ay = 0;
        az = 0;
    }
    __shared__ __align__(16) float body_tile[4][1][512];
    const int parts = (n) / 128;
    const int body_row = 0, body_column = thread * 4;
    const float* body_from = body + (0 + body_column);
    for (int part = 0; part < 3; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = 0; item < 4; ++item) {
                __pipeline_memcpy_async(&body_tile[part % 4][body_row][body_column + item * 128], body_from + part * (512) + item * (128), 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (part + 3 < parts) {
#pragma unroll
            for (int item = 0; item < 4; ++item) {
                __pipeline_memcpy_async(&body_tile[(part + 3) % 4][body_row][body_column + item * 128], body_from + (part + 3) * (512) + item * (128), 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 4;
        for (int i_in = 0; i_in < 128; i_in += 4) {
            __align__(16) float body_part[16];
#pragma unroll
            for (int c = 0; c < 16; c += 4) {
                *reinterpret_cast<float4*>(&body_part[c]) = *reinterpret_cast<const float4*>(&body_tile[buffer][0][i_in * 4 + c]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                float dx = body_part[turn * 4] - x;
                float dy = body_part[turn * 4 + 1] - y;
                float dz = body_part[turn * 4 + 2] - z;
                float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
                float pull = body_part[turn * 4 + 3] * inverse * inverse * inverse;
                ax += pull * dx;
                ay += pull * dy;
                az += pull * dz;
            }
        }
    }
    {
        const int idx = block_x + thread;
        acceleration[3 * idx] = ax;
        acceleration[3 * idx + 1] = ay;
        acceleration[3 * idx + 2] = az;
    }
}

__global__ void __launch_bounds__(32)
nbody_tuned_wide(const float *body, float *acceleration, int n, float softening, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 32;
    float x;
    float y;
    float z;
    float ax;
    float ay;
    float az;
    {
        const int idx = min(block_x + thread, idx_end - 1);
        x = body[4 * idx];
        y = body[4 * idx + 1];
        z = body[4 * idx + 2];
        ax = 0;
        ay = 0;
        az = 0;
    }
    __shared__ __align__(16) float body_tile[4][1][512];
    const int parts = (n + 127) / 128;
    for (int part = 0; part < 3; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 128; item += 32) {
                const int row = 0, column = item * 4;
                __pipeline_memcpy_async(&body_tile[part % 4][row][column], &body[min((part * 128) * 4 + column, 4 * n - 4)], 16);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (part + 3 < parts) {
#pragma unroll
            for (int item = thread; item < 128; item += 32) {
                const int row = 0, column = item * 4;
                __pipeline_memcpy_async(&body_tile[(part + 3) % 4][row][column], &body[min(((part + 3) * 128) * 4 + column, 4 * n - 4)], 16);
            }
        }
        __pipeline_commit();
        const int buffer = part % 4;
        const int left = min(128, n - part * 128);
        int i_in = 0;
        for (; i_in + 4 <= left; i_in += 4) {
            __align__(16) float body_part[16];
#pragma unroll
            for (int c = 0; c < 16; c += 4) {
                *reinterpret_cast<float4*>(&body_part[c]) = *reinterpret_cast<const float4*>(&body_tile[buffer][0][i_in * 4 + c]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                float dx = body_part[turn * 4] - x;
                float dy = body_part[turn * 4 + 1] - y;
                float dz = body_part[turn * 4 + 2] - z;
                float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
                float pull = body_part[turn * 4 + 3] * inverse * inverse * inverse;
                ax += pull * dx;
                ay += pull * dy;
                az += pull * dz;
            }
        }
        for (; i_in < left; ++i_in) {
            __align__(16) float body_part_[4];
            *reinterpret_cast<float4*>(&body_part_[0]) = *reinterpret_cast<const float4*>(&body_tile[buffer][0][i_in * 4]);
            float dx = body_part_[0] - x;
            float dy = body_part_[1] - y;
            float dz = body_part_[2] - z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = body_part_[3] * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
    }
    {
        const int idx = block_x + thread;
        if (idx < idx_end) {
            acceleration[3 * idx] = ax;
            acceleration[3 * idx + 1] = ay;
            acceleration[3 * idx + 2] = az;
        }
    }
}

__global__ void __launch_bounds__(32)
nbody_tuned(const float *body, float *acceleration, int n, float softening, int idx_end)
{
    const int thread = threadIdx.x;
    const int block_x = blockIdx.x * 32;
    float x;
    float y;
    float z;
    float ax;
    float ay;
    float az;
    {
        const int idx = min(block_x + thread, idx_end - 1);
        x = body[4 * idx];
        y = body[4 * idx + 1];
        z = body[4 * idx + 2];
        ax = 0;
        ay = 0;
        az = 0;
    }
    __shared__ __align__(16) float body_tile[4][1][512];
    const int parts = (n + 127) / 128;
    for (int part = 0; part < 3; ++part) {
        if (part < parts) {
#pragma unroll
            for (int item = thread; item < 512; item += 32) {
                const int row = 0, column = item;
                __pipeline_memcpy_async(&body_tile[part % 4][row][column], &body[min((part * 128) * 4 + column, 4 * n - 1)], 4);
            }
        }
        __pipeline_commit();
    }
    for (int part = 0; part < parts; ++part) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (part + 3 < parts) {
#pragma unroll
            for (int item = thread; item < 512; item += 32) {
                const int row = 0, column = item;
                __pipeline_memcpy_async(&body_tile[(part + 3) % 4][row][column], &body[min(((part + 3) * 128) * 4 + column, 4 * n - 1)], 4);
            }
        }
        __pipeline_commit();
        const int buffer = part % 4;
        const int left = min(128, n - part * 128);
        int i_in = 0;
        for (; i_in + 4 <= left; i_in += 4) {
            __align__(16) float body_part[16];
#pragma unroll
            for (int c = 0; c < 16; c += 4) {
                *reinterpret_cast<float4*>(&body_part[c]) = *reinterpret_cast<const float4*>(&body_tile[buffer][0][i_in * 4 + c]);
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                float dx = body_part[turn * 4] - x;
                float dy = body_part[turn * 4 + 1] - y;
                float dz = body_part[turn * 4 + 2] - z;
                float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
                float pull = body_part[turn * 4 + 3] * inverse * inverse * inverse;
                ax += pull * dx;
                ay += pull * dy;
                az += pull * dz;
            }
        }
        for (; i_in < left; ++i_in) {
            __align__(16) float body_part_[4];
            *reinterpret_cast<float4*>(&body_part_[0]) = *reinterpret_cast<const float4*>(&body_tile[buffer][0][i_in * 4]);
            float dx = body_part_[0] - x;
            float dy = body_part_[1] - y;
            float dz = body_part_[2] - z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = body_part_[3] * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
    }
    {
        const int idx = block_x + thread;
        if (idx < idx_end) {
            acceleration[3 * idx] = ax;
            acceleration[3 * idx + 1] = ay;
            acceleration[3 * idx + 2] = az;
        }
    }
}

static inline cudaError_t nbody_try(dim3 grid, dim3 block, const float *body, float *acceleration, int n, float softening, cudaStream_t stream_)
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
        4 * (double)idx_end - 2 > 2147483647.0 ||
        4 * (double)n - 1 > 2147483647.0 ||
        3 * (double)idx_end - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long body_first = 0;
    if (1 < body_first) body_first = 1;
    if (2 < body_first) body_first = 2;
    if (3 < body_first) body_first = 3;
    long long body_last = 4 * (long long)idx_end - 4;
    if (4 * (long long)idx_end - 3 > body_last) body_last = 4 * (long long)idx_end - 3;
    if (4 * (long long)idx_end - 2 > body_last) body_last = 4 * (long long)idx_end - 2;
    if (4 * (long long)n - 4 > body_last) body_last = 4 * (long long)n - 4;
    if (4 * (long long)n - 3 > body_last) body_last = 4 * (long long)n - 3;
    if (4 * (long long)n - 2 > body_last) body_last = 4 * (long long)n - 2;
    if (4 * (long long)n - 1 > body_last) body_last = 4 * (long long)n - 1;
    long long acceleration_first = 0;
    if (1 < acceleration_first) acceleration_first = 1;
    if (2 < acceleration_first) acceleration_first = 2;
    long long acceleration_last = 3 * (long long)idx_end - 3;
    if (3 * (long long)idx_end - 2 > acceleration_last) acceleration_last = 3 * (long long)idx_end - 2;
    if (3 * (long long)idx_end - 1 > acceleration_last) acceleration_last = 3 * (long long)idx_end - 1;
    if (((const char*)(body + body_first) < (const char*)(acceleration + acceleration_last) + 4 && (const char*)(acceleration + acceleration_first) < (const char*)(body + body_last) + 4)) return cudaErrorNotSupported;
    if (((long long)idx_end) % 32 == 0 &&
        ((long long)n) % 128 == 0 &&
        (size_t)body % 16 == 0) {
        nbody_tuned_full<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 32, 0, stream_>>>(
            body, acceleration, n, softening, (int)idx_end);
        return cudaPeekAtLastError();
    }
    if ((4 * (long long)n) % 4 == 0 &&
        (size_t)body % 16 == 0) {
        nbody_tuned_wide<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 32, 0, stream_>>>(
            body, acceleration, n, softening, (int)idx_end);
        return cudaPeekAtLastError();
    }
    {
        nbody_tuned<<<dim3((unsigned)((idx_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 32, 0, stream_>>>(
            body, acceleration, n, softening, (int)idx_end);
        return cudaPeekAtLastError();
    }
}

// In place of nbody<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void nbody_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *body, float *acceleration, int n, float softening)
{
    if (nbody_try(grid, block, body, acceleration, n, softening, stream_) == cudaErrorNotSupported)
        nbody<<<grid, block, shared, stream_>>>(body, acceleration, n, softening);
}

}  // extern "C++"


extern "C" void run_nbody(const float *body, float *acceleration, int n, float softening, cudaStream_t stream) {
    nbody_launch((n + 255) / 256, 256, 0, stream, body, acceleration, n, softening);
}
