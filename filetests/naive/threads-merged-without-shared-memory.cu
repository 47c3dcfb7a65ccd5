// test: naive tiles(32x8, points=1x4)
//  b is loaded once for four points

__global__ void mm(const float *a, const float *b, float *c, int w, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < w; i++) sum += a[idy * w + i] * b[i * n + idx];
    c[idy * n + idx] = sum;
}

// expect: naive tiles(32x8, points=1x4)
// block merge: a block of 256 threads computes 32 x 32 points
// thread merge: a thread computes 1 x 4 points, and what they share is loaded once
//
// mm_tuned: 256 threads for 32 x 32 x 1 points
//     const int thread = threadIdx.x;
//     const int thread_x = thread % 32;
//     const int thread_y = thread / 32;
//     const int block_x = blockIdx.x * 32;
//     const int block_y = blockIdx.y * 32;
//     float sum[4];
// #pragma unroll
//     for (int py = 0; py < 4; ++py) {
//         sum[py] = 0;
//     }
//     for (int i = 0; i < w; ++i) {
//         float b_own;
//         {
//             const int idx = min(block_x + thread_x, idx_end - 1);
//             b_own = b[n * i + idx];
//         }
// #pragma unroll
//         for (int py = 0; py < 4; ++py) {
//             const int idy = min(block_y + py * 8 + thread_y, idy_end - 1);
//             sum[py] += a[w * idy + i] * b_own;
//         }
//     }
// #pragma unroll
//     for (int py = 0; py < 4; ++py) {
//         const int idy = block_y + py * 8 + thread_y;
//         {
//             const int idx = block_x + thread_x;
//             if (idx < idx_end && idy < idy_end) {
//                 c[n * idy + idx] = sum[py];
//             }
//         }
//     }
