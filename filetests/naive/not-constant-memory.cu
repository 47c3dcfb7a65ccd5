// test: naive tiles(32x4, points=4x2, run=4x1, stage=4x1x2)
//  cp.async reads global memory alone: F stays where it is

__constant__ float F[64];
__global__ void k(const float *in, float *out, int m, int n, int f) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    float s = 0;
    for (int i = 0; i < f; i++) s += in[y * (n + f - 1) + x + i] * F[i];
    out[y * n + x] = s;
}

// expect: naive tiles(32x4, points=4x2, run=4x1, stage=4x1x2)
// block merge: a block of 128 threads computes 128 x 8 points
// thread merge: a thread computes 4 x 2 points, and what they share is loaded once; 4 x 1 of them are neighbours
// coalescing: 4 turns of the loop at a time, operands in shared memory, 1 turn written out
// prefetching: 1 part in flight by cp.async, no registers for it
// `in`: 8 x 132 elements a part in shared memory
//
// k_tuned_full: 128 threads for 128 x 8 x 1 points where x_end is a multiple of 128, y_end is a multiple of 8, f is a multiple of 4
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 128;
//     const int block_y = blockIdx.y * 8;
//     float s[2][4];
// #pragma unroll
//     for (int py = 0; py < 2; ++py) {
// #pragma unroll
//         for (int px = 0; px < 4; ++px) {
//             s[py][px] = 0;
//         }
//     }
//     __shared__ __align__(16) float in_tile[2][8][132];
//     const int parts = (f) / 4;
//     for (int part = 0; part < 1; ++part) {
//         if (part < parts) {
// #pragma unroll
//             for (int item = thread; item < 1056; item += 128) {
//                 const int row = item / 132, column = item % 132;
//                 __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[(block_y + row) * (n + f - 1) + min(block_x + part * 4 + column, f + x_end - 2)], 4);
//             }
//         }
//         __pipeline_commit();
//     }
//     for (int part = 0; part < parts; ++part) {
//         __pipeline_wait_prior(0);
//         __syncthreads();
//         if (part + 1 < parts) {
// #pragma unroll
//             for (int item = thread; item < 1056; item += 128) {
//                 const int row = item / 132, column = item % 132;
//                 __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[(block_y + row) * (n + f - 1) + min(block_x + (part + 1) * 4 + column, f + x_end - 2)], 4);
//             }
//         }
//         __pipeline_commit();
//         const int buffer = part % 2;
//         for (int i_in = 0; i_in < 4; ++i_in) {
//             float in_part[2][4];
// #pragma unroll
//             for (int py = 0; py < 2; ++py) {
// #pragma unroll
//                 for (int c = 0; c < 4; ++c) {
//                     in_part[py][c] = in_tile[buffer][py * 4 + thread_y][thread_x * 4 + i_in + c];
//                 }
//             }
//             const int i = part * 4 + i_in;
//             const float F_own = F[i];
// #pragma unroll
//             for (int py = 0; py < 2; ++py) {
// #pragma unroll
//                 for (int px = 0; px < 4; ++px) {
//                     s[py][px] += in_part[py][px] * F_own;
//                 }
//             }
//         }
//     }
// #pragma unroll
//     for (int py = 0; py < 2; ++py) {
//         const int y = block_y + py * 4 + thread_y;
// #pragma unroll
//         for (int px = 0; px < 4; ++px) {
//             const int x = block_x + thread_x * 4 + px;
//             out[n * y + x] = s[py][px];
//         }
//     }
//
// k_tuned_wide: 128 threads for 128 x 8 x 1 points
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 128;
//     const int block_y = blockIdx.y * 8;
//     float s[2][4];
// #pragma unroll
//     for (int py = 0; py < 2; ++py) {
// #pragma unroll
//         for (int px = 0; px < 4; ++px) {
//             s[py][px] = 0;
//         }
//     }
//     __shared__ __align__(16) float in_tile[2][8][132];
//     const int parts = (f + 3) / 4;
//     for (int part = 0; part < 1; ++part) {
//         if (part < parts) {
// #pragma unroll
//             for (int item = thread; item < 1056; item += 128) {
//                 const int row = item / 132, column = item % 132;
//                 __pipeline_memcpy_async(&in_tile[part % 2][row][column], &in[min(block_y + row, y_end - 1) * (n + f - 1) + min(block_x + part * 4 + column, f + x_end - 2)], 4);
//             }
//         }
//         __pipeline_commit();
//     }
//     for (int part = 0; part < parts; ++part) {
//         __pipeline_wait_prior(0);
//         __syncthreads();
//         if (part + 1 < parts) {
// #pragma unroll
//             for (int item = thread; item < 1056; item += 128) {
//                 const int row = item / 132, column = item % 132;
//                 __pipeline_memcpy_async(&in_tile[(part + 1) % 2][row][column], &in[min(block_y + row, y_end - 1) * (n + f - 1) + min(block_x + (part + 1) * 4 + column, f + x_end - 2)], 4);
//             }
//         }
//         __pipeline_commit();
//         const int buffer = part % 2;
//         const int left = min(4, f - part * 4);
//         for (int i_in = 0; i_in < left; ++i_in) {
//             float in_part[2][4];
// #pragma unroll
//             for (int py = 0; py < 2; ++py) {
// #pragma unroll
//                 for (int c = 0; c < 4; ++c) {
//                     in_part[py][c] = in_tile[buffer][py * 4 + thread_y][thread_x * 4 + i_in + c];
//                 }
//             }
//             const int i = part * 4 + i_in;
//             const float F_own = F[i];
// #pragma unroll
//             for (int py = 0; py < 2; ++py) {
// #pragma unroll
//                 for (int px = 0; px < 4; ++px) {
//                     s[py][px] += in_part[py][px] * F_own;
//                 }
//             }
//         }
//     }
// #pragma unroll
//     for (int py = 0; py < 2; ++py) {
//         const int y = block_y + py * 4 + thread_y;
// #pragma unroll
//         for (int px = 0; px < 4; ++px) {
//             const int x = block_x + thread_x * 4 + px;
//             if (x < x_end && y < y_end) {
//                 out[n * y + x] = s[py][px];
//             }
//         }
//     }
