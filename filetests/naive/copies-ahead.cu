// test: naive tiles(32x8, stage=32x1x2)
//  section 3.6: prefetching, here by cp.async

__global__ void mm(const float *a, const float *b, float *c, int w, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < w; i++) sum += a[idy * w + i] * b[i * n + idx];
    c[idy * n + idx] = sum;
}

// expect: naive tiles(32x8, stage=32x1x2)
// block merge: a block of 256 threads computes 32 x 8 points
// coalescing: 32 turns of the loop at a time, operands in shared memory, 1 turn written out
// prefetching: 1 part in flight by cp.async, no registers for it
// `a`: 8 x 32 elements a part in shared memory
// `b`: 32 x 32 elements a part in shared memory
//
// mm_tuned_full: 256 threads for 32 x 8 x 1 points where idx_end is a multiple of 32, idy_end is a multiple of 8, w is a multiple of 32, w is a multiple of 4, a lies at a multiple of 16, n is a multiple of 4, b lies at a multiple of 16
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 8;
//     float sum;
//     sum = 0;
//     __shared__ __align__(16) float a_tile[2][8][36];
//     __shared__ __align__(16) float b_tile[2][32][32];
//     const int parts = (w) / 32;
//     const int b_row = thread / 8, b_column = thread % 8 * 4;
//     const float* b_from = b + (block_x + b_row * (n) + b_column);
//     for (int part = 0; part < 1; ++part) {
//         if (part < parts) {
// #pragma unroll
//             for (int item = thread; item < 64; item += 256) {
//                 const int row = item / 8, column = item % 8 * 4;
//                 __pipeline_memcpy_async(&a_tile[part % 2][row][column], &a[(block_y + row) * w + part * 32 + column], 16);
//             }
//             __pipeline_memcpy_async(&b_tile[part % 2][b_row][b_column], b_from + part * (32 * n), 16);
//         }
//         __pipeline_commit();
//     }
//     for (int part = 0; part < parts; ++part) {
//         __pipeline_wait_prior(0);
//         __syncthreads();
//         if (part + 1 < parts) {
// #pragma unroll
//             for (int item = thread; item < 64; item += 256) {
//                 const int row = item / 8, column = item % 8 * 4;
//                 __pipeline_memcpy_async(&a_tile[(part + 1) % 2][row][column], &a[(block_y + row) * w + (part + 1) * 32 + column], 16);
//             }
//             __pipeline_memcpy_async(&b_tile[(part + 1) % 2][b_row][b_column], b_from + (part + 1) * (32 * n), 16);
//         }
//         __pipeline_commit();
//         const int buffer = part % 2;
//         for (int i_in = 0; i_in < 32; ++i_in) {
//             const float a_part = a_tile[buffer][thread_y][i_in];
//             const float b_part = b_tile[buffer][i_in][thread_x];
//             sum += a_part * b_part;
//         }
//     }
//     {
//         const int idy = block_y + thread_y;
//         {
//             const int idx = block_x + thread_x;
//             c[n * idy + idx] = sum;
//         }
//     }
//
// mm_tuned_wide: 256 threads for 32 x 8 x 1 points where w is a multiple of 4, a lies at a multiple of 16, n is a multiple of 4, idx_end is a multiple of 4, b lies at a multiple of 16
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 8;
//     float sum;
//     sum = 0;
//     __shared__ __align__(16) float a_tile[2][8][36];
//     __shared__ __align__(16) float b_tile[2][32][32];
//     const int parts = (w + 31) / 32;
//     for (int part = 0; part < 1; ++part) {
//         if (part < parts) {
// #pragma unroll
//             for (int item = thread; item < 64; item += 256) {
//                 const int row = item / 8, column = item % 8 * 4;
//                 __pipeline_memcpy_async(&a_tile[part % 2][row][column], &a[min(block_y + row, idy_end - 1) * w + min(part * 32 + column, w - 4)], 16);
//             }
// #pragma unroll
//             for (int item_ = thread; item_ < 256; item_ += 256) {
//                 const int row_ = item_ / 8, column_ = item_ % 8 * 4;
//                 __pipeline_memcpy_async(&b_tile[part % 2][row_][column_], &b[min(part * 32 + row_, w - 1) * n + min(block_x + column_, idx_end - 4)], 16);
//             }
//         }
//         __pipeline_commit();
//     }
//     for (int part = 0; part < parts; ++part) {
//         __pipeline_wait_prior(0);
//         __syncthreads();
//         if (part + 1 < parts) {
// #pragma unroll
//             for (int item = thread; item < 64; item += 256) {
//                 const int row = item / 8, column = item % 8 * 4;
//                 __pipeline_memcpy_async(&a_tile[(part + 1) % 2][row][column], &a[min(block_y + row, idy_end - 1) * w + min((part + 1) * 32 + column, w - 4)], 16);
//             }
// #pragma unroll
//             for (int item_ = thread; item_ < 256; item_ += 256) {
//                 const int row_ = item_ / 8, column_ = item_ % 8 * 4;
//                 __pipeline_memcpy_async(&b_tile[(part + 1) % 2][row_][column_], &b[min((part + 1) * 32 + row_, w - 1) * n + min(block_x + column_, idx_end - 4)], 16);
//             }
//         }
//         __pipeline_commit();
//         const int buffer = part % 2;
//         const int left = min(32, w - part * 32);
//         for (int i_in = 0; i_in < left; ++i_in) {
//             const float a_part = a_tile[buffer][thread_y][i_in];
//             const float b_part = b_tile[buffer][i_in][thread_x];
//             sum += a_part * b_part;
//         }
//     }
//     {
//         const int idy = block_y + thread_y;
//         {
//             const int idx = block_x + thread_x;
//             if (idx < idx_end && idy < idy_end) {
//                 c[n * idy + idx] = sum;
//             }
//         }
//     }
//
// mm_tuned: 256 threads for 32 x 8 x 1 points
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 8;
//     float sum;
//     sum = 0;
//     __shared__ __align__(16) float a_tile[2][8][36];
//     __shared__ __align__(16) float b_tile[2][32][32];
//     const int parts = (w + 31) / 32;
//     for (int part = 0; part < 1; ++part) {
//         if (part < parts) {
// #pragma unroll
//             for (int item = thread; item < 256; item += 256) {
//                 const int row = item / 32, column = item % 32;
//                 __pipeline_memcpy_async(&a_tile[part % 2][row][column], &a[min(block_y + row, idy_end - 1) * w + min(part * 32 + column, w - 1)], 4);
//             }
// #pragma unroll
//             for (int item_ = thread; item_ < 1024; item_ += 256) {
//                 const int row_ = item_ / 32, column_ = item_ % 32;
//                 __pipeline_memcpy_async(&b_tile[part % 2][row_][column_], &b[min(part * 32 + row_, w - 1) * n + min(block_x + column_, idx_end - 1)], 4);
//             }
//         }
//         __pipeline_commit();
//     }
//     for (int part = 0; part < parts; ++part) {
//         __pipeline_wait_prior(0);
//         __syncthreads();
//         if (part + 1 < parts) {
// #pragma unroll
//             for (int item = thread; item < 256; item += 256) {
//                 const int row = item / 32, column = item % 32;
//                 __pipeline_memcpy_async(&a_tile[(part + 1) % 2][row][column], &a[min(block_y + row, idy_end - 1) * w + min((part + 1) * 32 + column, w - 1)], 4);
//             }
// #pragma unroll
//             for (int item_ = thread; item_ < 1024; item_ += 256) {
//                 const int row_ = item_ / 32, column_ = item_ % 32;
//                 __pipeline_memcpy_async(&b_tile[(part + 1) % 2][row_][column_], &b[min((part + 1) * 32 + row_, w - 1) * n + min(block_x + column_, idx_end - 1)], 4);
//             }
//         }
//         __pipeline_commit();
//         const int buffer = part % 2;
//         const int left = min(32, w - part * 32);
//         for (int i_in = 0; i_in < left; ++i_in) {
//             const float a_part = a_tile[buffer][thread_y][i_in];
//             const float b_part = b_tile[buffer][i_in][thread_x];
//             sum += a_part * b_part;
//         }
//     }
//     {
//         const int idy = block_y + thread_y;
//         {
//             const int idx = block_x + thread_x;
//             if (idx < idx_end && idy < idy_end) {
//                 c[n * idy + idx] = sum;
//             }
//         }
//     }
