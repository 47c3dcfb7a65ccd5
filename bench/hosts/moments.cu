// Second moments of seven columns: 28 sums of products per thread, in double precision.
//
// A block of 1024 threads leaves 64 registers for a thread, and the sums alone need 56.

namespace {

constexpr int COLUMNS = 7;
constexpr int SUMS = COLUMNS * (COLUMNS + 1) / 2;
constexpr int WARPS = 32;  // per block

}  // namespace

// columns: [COLUMNS][n]; sums: [blocks][SUMS]
extern "C" __global__ void __launch_bounds__(32 * WARPS)
moments(int n, const float* __restrict__ columns, double* __restrict__ sums) {
    __shared__ double of_warp[SUMS][WARPS];
    double sum[SUMS] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        double x[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) x[c] = columns[(long long)c * n + i];
        int at = 0;
#pragma unroll
        for (int a = 0; a < COLUMNS; ++a)
#pragma unroll
            for (int b = a; b < COLUMNS; ++b) sum[at++] += x[a] * x[b];
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int k = 0; k < SUMS; ++k) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            sum[k] += __shfl_down_sync(0xFFFFFFFF, sum[k], distance);
        if (lane == 0) of_warp[k][warp] = sum[k];
    }
    __syncthreads();
    // One warp for each sum: 28 of the 32.
    if (warp >= SUMS) return;
    double total = of_warp[warp][lane];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        total += __shfl_down_sync(0xFFFFFFFF, total, distance);
    if (lane == 0) sums[blockIdx.x * SUMS + warp] = total;
}
