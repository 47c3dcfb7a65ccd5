// test: naive team(128, 4)
//  section 3.1: a[2 * i] and a[2 * i + 1] are one access

#pragma warpwright naive reassociate
__global__ void row(const float *a, float *s, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= m) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += fabsf(a[x * 2 * n + 2 * i]) + fabsf(a[x * 2 * n + 2 * i + 1]);
    s[x] = sum;
}

// expect: naive team(128, 4)
// 32 threads share the turns of a point, so that neighbours load neighbouring elements; `sum` is combined at the end
//
// row_team_wide: 128 threads for 4 x 1 x 1 points where a lies at a multiple of 16, 2 * n is a multiple of 4, n is a multiple of 4
//     const int rank = threadIdx.x % 32;
//     const int x = blockIdx.x * 4 + threadIdx.x / 32;
//     if (x >= x_end) return;
//     float sum = 0;
//     float sum_own = 0;
//     for (int i_first = rank * 4; i_first < n; i_first += 128) {
//         alignas(16) float a_four[8];
//         *reinterpret_cast<float4 *>(&a_four[0]) = *reinterpret_cast<const float4 *>(&a[2 * n * x + 2 * i_first]);
//         *reinterpret_cast<float4 *>(&a_four[4]) = *reinterpret_cast<const float4 *>(&a[2 * n * x + 2 * i_first + 4]);
//         #pragma unroll
//         for (int turn = 0; turn < 4; turn++) {
//             sum_own += fabsf(a_four[2 * turn]) + fabsf(a_four[2 * turn + 1]);
//         }
//     }
//     for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
//     sum = sum + sum_own;
//     if (rank == 0) {
//         s[x] = sum;
//     }
//
// row_team: 128 threads for 4 x 1 x 1 points
//     const int rank = threadIdx.x % 32;
//     const int x = blockIdx.x * 4 + threadIdx.x / 32;
//     if (x >= x_end) return;
//     float sum = 0;
//     float sum_own = 0;
//     for (int i = rank; i < n; i += 32) {
//         sum_own += fabsf(a[2 * n * x + 2 * i]) + fabsf(a[2 * n * x + 2 * i + 1]);
//     }
//     for (int far = 16; far > 0; far /= 2) sum_own = sum_own + __shfl_xor_sync(0xffffffff, sum_own, far);
//     sum = sum + sum_own;
//     if (rank == 0) {
//         s[x] = sum;
//     }
