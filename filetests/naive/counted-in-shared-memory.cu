// test: naive totals(128, 4)
//  a table of a block, as long as the condition says

__global__ void histogram(const int *data, unsigned *bins, int n, int count) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    int b = data[x];
    if (b >= 0 && b < count) atomicAdd(&bins[b], 1u);
}

// expect: naive totals(128, 4)
// a block counts in shared memory what goes to `bins`, and changes each element there once
//
// histogram_totals_wide: 128 threads for 2048 x 1 x 1 points where count is 4096 at most, data lies at a multiple of 16, x_end is a multiple of 4
//     __shared__ unsigned bins_own[4096];
//     for (int cell = threadIdx.x; cell < count; cell += 128) bins_own[cell] = 0;
//     __syncthreads();
//     const int first = blockIdx.x * 2048 + threadIdx.x * 4;
//     for (int turn = 0; turn < 4; turn += 4) {
//         alignas(16) int data_four[4][4];
//         #pragma unroll
//         for (int ahead = 0; ahead < 4; ahead++) {
//             const int begin = first + (turn + ahead) * 512;
//             if (begin >= x_end) break;
//             *reinterpret_cast<int4 *>(&data_four[ahead][0]) = *reinterpret_cast<const int4 *>(&data[begin]);
//         }
//         #pragma unroll
//         for (int ahead = 0; ahead < 4; ahead++) {
//             const int begin_2 = first + (turn + ahead) * 512;
//             if (begin_2 >= x_end) break;
//             #pragma unroll
//             for (int near = 0; near < 4; near++) {
//                 int b = data_four[ahead][near];
//                 if (b >= 0 && b < count) {
//                     atomicAdd(&bins_own[b], (unsigned)1);
//                 }
//             }
//         }
//     }
//     __syncthreads();
//     for (int cell = threadIdx.x; cell < count; cell += 128) {
//         if (bins_own[cell] != 0) atomicAdd(&bins[cell], bins_own[cell]);
//     }
//
// histogram_totals: 128 threads for 512 x 1 x 1 points where count is 4096 at most
//     __shared__ unsigned bins_own[4096];
//     for (int cell = threadIdx.x; cell < count; cell += 128) bins_own[cell] = 0;
//     __syncthreads();
//     const int first = blockIdx.x * 512 + threadIdx.x;
//     for (int turn = 0; turn < 4; turn++) {
//         const int x = first + turn * 128;
//         if (x >= x_end) break;
//         int b = data[x];
//         if (b >= 0 && b < count) {
//             atomicAdd(&bins_own[b], (unsigned)1);
//         }
//     }
//     __syncthreads();
//     for (int cell = threadIdx.x; cell < count; cell += 128) {
//         if (bins_own[cell] != 0) atomicAdd(&bins[cell], bins_own[cell]);
//     }
