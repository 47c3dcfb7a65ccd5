// test: naive tiles(32x1, stage=32x1)
//  section 3.3: a warp for a block, 32 turns of the loop at a time (Fig. 3a)

__global__ void mm(const float *a, const float *b, float *c, int w, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < w; i++) sum += a[idy * w + i] * b[i * n + idx];
    c[idy * n + idx] = sum;
}

// expect: naive tiles(32x1, stage=32x1)
// block merge: a block of 32 threads computes 32 x 1 points
// coalescing: 32 turns of the loop at a time, operands in shared memory, 1 turn written out
// `a`: 1 x 32 elements a part in shared memory
//
// mm_tuned_full: 32 threads for 32 x 1 x 1 points where idx_end is a multiple of 32, idy_end is a multiple of 1, w is a multiple of 32, w is a multiple of 4, a lies at a multiple of 16
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 1;
//     float sum;
//     sum = 0;
//     __shared__ __align__(16) float a_tile[1][32];
//     const int parts = (w) / 32;
//     for (int part = 0; part < parts; ++part) {
// #pragma unroll
//         for (int item = thread; item < 8; item += 32) {
//             const int row = 0, column = item * 4;
//             *reinterpret_cast<float4*>(&a_tile[row][column]) = *reinterpret_cast<const float4*>(&a[w * block_y + part * 32 + column]);
//         }
//         __syncthreads();
//         for (int i_in = 0; i_in < 32; ++i_in) {
//             const float a_part = a_tile[0][i_in];
//             const int i = part * 32 + i_in;
//             {
//                 const int idx = block_x + thread_x;
//                 sum += a_part * b[n * i + idx];
//             }
//         }
//         __syncthreads();
//     }
//     {
//         const int idy = block_y + thread_y;
//         {
//             const int idx = block_x + thread_x;
//             c[n * idy + idx] = sum;
//         }
//     }
//
// mm_tuned_wide: 32 threads for 32 x 1 x 1 points where w is a multiple of 4, a lies at a multiple of 16
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 1;
//     float sum;
//     sum = 0;
//     __shared__ __align__(16) float a_tile[1][32];
//     const int parts = (w + 31) / 32;
//     for (int part = 0; part < parts; ++part) {
// #pragma unroll
//         for (int item = thread; item < 8; item += 32) {
//             const int row = 0, column = item * 4;
//             *reinterpret_cast<float4*>(&a_tile[row][column]) = *reinterpret_cast<const float4*>(&a[w * block_y + min(part * 32 + column, w - 4)]);
//         }
//         __syncthreads();
//         const int left = min(32, w - part * 32);
//         for (int i_in = 0; i_in < left; ++i_in) {
//             const float a_part = a_tile[0][i_in];
//             const int i = part * 32 + i_in;
//             {
//                 const int idx = min(block_x + thread_x, idx_end - 1);
//                 sum += a_part * b[n * i + idx];
//             }
//         }
//         __syncthreads();
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
// mm_tuned: 32 threads for 32 x 1 x 1 points
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 1;
//     float sum;
//     sum = 0;
//     __shared__ __align__(16) float a_tile[1][32];
//     const int parts = (w + 31) / 32;
//     for (int part = 0; part < parts; ++part) {
// #pragma unroll
//         for (int item = thread; item < 32; item += 32) {
//             const int row = 0, column = item;
//             a_tile[row][column] = a[w * block_y + min(part * 32 + column, w - 1)];
//         }
//         __syncthreads();
//         const int left = min(32, w - part * 32);
//         for (int i_in = 0; i_in < left; ++i_in) {
//             const float a_part = a_tile[0][i_in];
//             const int i = part * 32 + i_in;
//             {
//                 const int idx = min(block_x + thread_x, idx_end - 1);
//                 sum += a_part * b[n * i + idx];
//             }
//         }
//         __syncthreads();
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
