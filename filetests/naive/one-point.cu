// A guard that leaves one point: it may store what does not depend on its place.
// test: naive team(64, 1)

#pragma warpwright naive reassociate
__global__ void dot(const float *a, const float *b, float *result, int n)
{
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid == 0) {
        float s = 0;
        for (int i = 0; i < n; i++) s += a[i] * b[i];
        *result = s;
    }
}

// expect: naive team(64, 1)
// 64 threads share the turns of a point, so that neighbours load neighbouring elements; `s` is combined at the end
//
// dot_team_wide: 64 threads for 1 x 1 x 1 points where a lies at a multiple of 16, b lies at a multiple of 16, n is a multiple of 4
//     const int rank = threadIdx.x;
//     const int tid = blockIdx.x;
//     if (tid < 0) return;
//     float s = 0;
//     float s_own = 0;
//     for (int i_first = rank * 4; i_first < n; i_first += 256) {
//         alignas(16) float a_four[4];
//         *reinterpret_cast<float4 *>(&a_four[0]) = *reinterpret_cast<const float4 *>(&a[i_first]);
//         alignas(16) float b_four[4];
//         *reinterpret_cast<float4 *>(&b_four[0]) = *reinterpret_cast<const float4 *>(&b[i_first]);
//         #pragma unroll
//         for (int turn = 0; turn < 4; turn++) {
//             s_own += a_four[turn] * b_four[turn];
//         }
//     }
//     for (int far = 16; far > 0; far /= 2) s_own = s_own + __shfl_xor_sync(0xffffffff, s_own, far);
//     __shared__ float s_parts[2];
//     if (rank % 32 == 0) s_parts[rank / 32] = s_own;
//     __syncthreads();
//     s_own = s_parts[0];
//     #pragma unroll
//     for (int part = 1; part < 2; part++) s_own = s_own + s_parts[part];
//     s = s + s_own;
//     if (rank == 0) {
//         result[0] = s;
//     }
//
// dot_team: 64 threads for 1 x 1 x 1 points
//     const int rank = threadIdx.x;
//     const int tid = blockIdx.x;
//     if (tid < 0) return;
//     float s = 0;
//     float s_own = 0;
//     for (int i = rank; i < n; i += 64) {
//         s_own += a[i] * b[i];
//     }
//     for (int far = 16; far > 0; far /= 2) s_own = s_own + __shfl_xor_sync(0xffffffff, s_own, far);
//     __shared__ float s_parts[2];
//     if (rank % 32 == 0) s_parts[rank / 32] = s_own;
//     __syncthreads();
//     s_own = s_parts[0];
//     #pragma unroll
//     for (int part = 1; part < 2; part++) s_own = s_own + s_parts[part];
//     s = s + s_own;
//     if (rank == 0) {
//         result[0] = s;
//     }
