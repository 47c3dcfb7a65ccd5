// Normal equations of point-to-plane registration: one Gauss-Newton step of ICP.
//
// Every source point, moved by the present pose, is compared with the plane through its partner
// (Chen and Medioni 1992; Huber's weights against outliers). What the step needs are sums over
// all points: the 21 distinct entries of J^T W J, the 6 of J^T W r, the weighted squared error
// and the weight. Residuals are FP32, the 29 running sums FP64. A block of 1024 threads strides
// over the points, then adds its sums by shuffles and through shared memory; a later kernel adds
// the blocks. With 1024 threads a thread has 64 registers, and the sums alone need 58.

namespace {

constexpr int UNKNOWNS = 6;  // three of rotation, three of translation
constexpr int SUMS = 29;     // 21 + 6 + 2
constexpr int WARPS = 32;    // per block

}  // namespace

// Row-major rotation and translation, by value.
struct Pose {
    float r[3][3], t[3];
};

// source, target, normal: [3][n], partners at equal places; sums: [blocks][SUMS]
// huber: residuals beyond it count linearly
extern "C" __global__ void __launch_bounds__(32 * WARPS)
icp_normal(int n, float huber, Pose pose, const float* __restrict__ source,
           const float* __restrict__ target, const float* __restrict__ normal,
           double* __restrict__ sums) {
    __shared__ double of_warp[SUMS][WARPS];
    double sum[SUMS] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float x = source[i], y = source[n + i], z = source[2 * n + i];
        const float nx = normal[i], ny = normal[n + i], nz = normal[2 * n + i];
        float px = pose.r[0][0] * x + pose.r[0][1] * y + pose.r[0][2] * z + pose.t[0];
        float py = pose.r[1][0] * x + pose.r[1][1] * y + pose.r[1][2] * z + pose.t[1];
        float pz = pose.r[2][0] * x + pose.r[2][1] * y + pose.r[2][2] * z + pose.t[2];
        float residual = nx * (px - target[i]) + ny * (py - target[n + i])
                       + nz * (pz - target[2 * n + i]);
        float weight = fabsf(residual) <= huber ? 1.0f : huber / fabsf(residual);
        // The residual changes by (p x normal) . dw + normal . dt.
        const float jacobian[UNKNOWNS] = {py * nz - pz * ny, pz * nx - px * nz,
                                          px * ny - py * nx, nx, ny, nz};
        int at = 0;
#pragma unroll
        for (int a = 0; a < UNKNOWNS; ++a) {
            double weighted = (double)weight * jacobian[a];
#pragma unroll
            for (int b = a; b < UNKNOWNS; ++b) sum[at++] += weighted * jacobian[b];
            sum[21 + a] += weighted * residual;
        }
        sum[27] += (double)weight * residual * residual;
        sum[28] += weight;
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
    // One warp for each sum: 29 of the 32.
    if (warp >= SUMS) return;
    double total = of_warp[warp][lane];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        total += __shfl_down_sync(0xFFFFFFFF, total, distance);
    if (lane == 0) sums[blockIdx.x * SUMS + warp] = total;
}
