// test: naive team(128, points)
//  a warp reads four rows of 32 columns at once

#pragma warpwright naive reassociate
__global__ void tmv(const float *a, const float *x, float *y, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float sum = 0;
    for (int i = 0; i < m; i++) sum += a[i * n + idx] * x[i];
    y[idx] = sum;
}

// expect: naive team(128, points)
// 4 warps of a block share the turns; their lanes are neighbouring points; `sum` is combined at the end
//
// tmv_team_wide: 128 threads for 32 x 1 x 1 points where a lies at a multiple of 16, n is a multiple of 4, idx_end is a multiple of 4
//     const int column = threadIdx.x % 32;
//     const int rank = threadIdx.x / 32;
//     const int place = blockIdx.x * 32 + column;
//     const bool inside = place < idx_end;
//     // Threads outside compute what the last one computes, and store nothing.
//     const int idx = min(place, idx_end - 1);
//     float sum = 0;
//     // Here a thread has four neighbouring points, and a warp four turns at once.
//     const int first = min((int)(blockIdx.x * 32 + threadIdx.x % 8 * 4), idx_end - 4);
//     const int row = threadIdx.x / 8;
//     float sum_four[4] = {};
//     for (int i = row; i < m; i += 16) {
//         alignas(16) float a_four[4];
//         *reinterpret_cast<float4 *>(&a_four[0]) = *reinterpret_cast<const float4 *>(&a[n * i + first]);
//         #pragma unroll
//         for (int turn = 0; turn < 4; turn++) {
//             sum_four[turn] += a_four[turn] * x[i];
//         }
//     }
//     __shared__ float sum_parts[4][32];
//     #pragma unroll
//     for (int turn = 0; turn < 4; turn++) {
//         for (int far = 8; far < 32; far *= 2) sum_four[turn] = sum_four[turn] + __shfl_xor_sync(0xffffffff, sum_four[turn], far);
//         if (threadIdx.x % 32 < 8) sum_parts[rank][threadIdx.x % 8 * 4 + turn] = sum_four[turn];
//     }
//     float sum_own;
//     __syncthreads();
//     if (rank != 0) return;
//     sum_own = sum_parts[0][column];
//     #pragma unroll
//     for (int part = 1; part < 4; part++) sum_own = sum_own + sum_parts[part][column];
//     sum = sum + sum_own;
//     if (rank == 0 && inside) {
//         y[idx] = sum;
//     }
//
// tmv_team: 128 threads for 32 x 1 x 1 points
//     const int column = threadIdx.x % 32;
//     const int rank = threadIdx.x / 32;
//     const int place = blockIdx.x * 32 + column;
//     const bool inside = place < idx_end;
//     // Threads outside compute what the last one computes, and store nothing.
//     const int idx = min(place, idx_end - 1);
//     float sum = 0;
//     float sum_own = 0;
//     for (int i = rank; i < m; i += 4) {
//         sum_own += a[n * i + idx] * x[i];
//     }
//     __shared__ float sum_parts[4][32];
//     sum_parts[rank][column] = sum_own;
//     __syncthreads();
//     if (rank != 0) return;
//     sum_own = sum_parts[0][column];
//     #pragma unroll
//     for (int part = 1; part < 4; part++) sum_own = sum_own + sum_parts[part][column];
//     sum = sum + sum_own;
//     if (rank == 0 && inside) {
//         y[idx] = sum;
//     }
