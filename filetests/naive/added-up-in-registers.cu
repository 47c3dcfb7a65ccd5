// test: naive totals(64, 8)
//  one element: the values of a block are combined

__global__ void above(const float *a, float *sum, float least, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n && a[x] > least) atomicAdd(sum, a[x]);
}

// expect: naive totals(64, 8)
// what goes to `sum` is added up in registers before, for all of a thread's points: 8
//
// above_totals_wide: 64 threads for 2048 x 1 x 1 points where a lies at a multiple of 16, x_end is a multiple of 4
//     float sum_own = 0;
//     const int first = blockIdx.x * 2048 + threadIdx.x * 4;
//     for (int turn = 0; turn < 8; turn += 4) {
//         alignas(16) float a_four[4][4];
//         #pragma unroll
//         for (int ahead = 0; ahead < 4; ahead++) {
//             const int begin = first + (turn + ahead) * 256;
//             if (begin >= x_end) break;
//             *reinterpret_cast<float4 *>(&a_four[ahead][0]) = *reinterpret_cast<const float4 *>(&a[begin]);
//         }
//         #pragma unroll
//         for (int ahead = 0; ahead < 4; ahead++) {
//             const int begin_2 = first + (turn + ahead) * 256;
//             if (begin_2 >= x_end) break;
//             #pragma unroll
//             for (int near = 0; near < 4; near++) {
//                 const int x = begin_2 + near;
//                 if (a_four[ahead][near] > least) {
//                     sum_own = sum_own + (float)a[x];
//                 }
//             }
//         }
//     }
//     for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
//     __shared__ float sum_own_parts[2];
//     if (threadIdx.x % 32 == 0) sum_own_parts[threadIdx.x / 32] = sum_own;
//     __syncthreads();
//     if (threadIdx.x == 0) {
//         for (int warp = 1; warp < 2; warp++) sum_own = sum_own + sum_own_parts[warp];
//         if (sum_own != 0) atomicAdd(&sum[0], sum_own);
//     }
//
// above_totals: 64 threads for 512 x 1 x 1 points
//     float sum_own = 0;
//     const int first = blockIdx.x * 512 + threadIdx.x;
//     for (int turn = 0; turn < 8; turn++) {
//         const int x = first + turn * 64;
//         if (x >= x_end) break;
//         if (a[x] > least) {
//             sum_own = sum_own + (float)a[x];
//         }
//     }
//     for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
//     __shared__ float sum_own_parts[2];
//     if (threadIdx.x % 32 == 0) sum_own_parts[threadIdx.x / 32] = sum_own;
//     __syncthreads();
//     if (threadIdx.x == 0) {
//         for (int warp = 1; warp < 2; warp++) sum_own = sum_own + sum_own_parts[warp];
//         if (sum_own != 0) atomicAdd(&sum[0], sum_own);
//     }
