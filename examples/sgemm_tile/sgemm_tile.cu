// Single-precision matrix product C = alpha A B + beta C with a bias and a leaky ReLU, tiled
// through shared memory and registers.
//
// A block of 256 threads computes 128 x 128 elements of C, a thread 8 x 8 of them in two halves
// per direction (so that a warp's reads from shared memory are conflict-free vectors). The next
// panel of A and B is fetched into registers while the current one is multiplied.

namespace {

constexpr int TILE = 128;    // rows and columns per block
constexpr int PANEL = 8;     // inner indices per step
constexpr int OWN = 8;       // rows and columns per thread

}  // namespace

// a: [m][k], b: [k][n], c: [m][n], all row by row; bias: [n]
// m and n must be multiples of 128, k one of 8.
extern "C" __global__ void sgemm_tile(int m, int n, int k, float alpha, float beta, float slope,
                                      const float* __restrict__ a, const float* __restrict__ b,
                                      const float* __restrict__ bias, float* __restrict__ c) {
    __shared__ float4 panel_a[2][PANEL][TILE / 4], panel_b[2][PANEL][TILE / 4];
    const int thread = threadIdx.x;
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    const int tx = thread % 16, ty = thread / 16;

    // What this thread fetches: four neighbours along k of one row of A, along n of one row of B.
    const int a_row = thread / 2, a_k = thread % 2 * 4;
    const int b_k = thread / 32, b_column = thread % 32;
    const float* from_a = a + (long long)(row0 + a_row) * k + a_k;
    const float* from_b = b + (long long)b_k * n + column0 + b_column * 4;

    float4 next_a = *reinterpret_cast<const float4*>(from_a);
    float4 next_b = *reinterpret_cast<const float4*>(from_b);
    float sum[OWN][OWN] = {};
    int buffer = 0;
    for (int first = 0; first < k; first += PANEL) {
        // A is transposed on the way into shared memory.
        float* to_a = reinterpret_cast<float*>(panel_a[buffer][a_k]) + a_row;
        to_a[0 * TILE] = next_a.x;
        to_a[1 * TILE] = next_a.y;
        to_a[2 * TILE] = next_a.z;
        to_a[3 * TILE] = next_a.w;
        panel_b[buffer][b_k][b_column] = next_b;
        __syncthreads();
        if (first + PANEL < k) {
            from_a += PANEL;
            from_b += (long long)PANEL * n;
            next_a = *reinterpret_cast<const float4*>(from_a);
            next_b = *reinterpret_cast<const float4*>(from_b);
        }
#pragma unroll
        for (int p = 0; p < PANEL; ++p) {
            float4 x0 = panel_a[buffer][p][ty], x1 = panel_a[buffer][p][ty + 16];
            float4 y0 = panel_b[buffer][p][tx], y1 = panel_b[buffer][p][tx + 16];
            const float x[OWN] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
            const float y[OWN] = {y0.x, y0.y, y0.z, y0.w, y1.x, y1.y, y1.z, y1.w};
#pragma unroll
            for (int i = 0; i < OWN; ++i)
#pragma unroll
                for (int j = 0; j < OWN; ++j) sum[i][j] += x[i] * y[j];
        }
        buffer ^= 1;  // the other half is free: everybody has passed the barrier since reading it
    }

#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        int row = row0 + i / 4 * 64 + ty * 4 + i % 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            int column = column0 + half * 64 + tx * 4;
            float4* to = reinterpret_cast<float4*>(c + (long long)row * n + column);
            float4 old = *to, add = *reinterpret_cast<const float4*>(bias + column);
            float v[4] = {alpha * sum[i][4 * half] + beta * old.x + add.x,
                          alpha * sum[i][4 * half + 1] + beta * old.y + add.y,
                          alpha * sum[i][4 * half + 2] + beta * old.z + add.z,
                          alpha * sum[i][4 * half + 3] + beta * old.w + add.w};
#pragma unroll
            for (int e = 0; e < 4; ++e) v[e] = v[e] > 0.0f ? v[e] : slope * v[e];
            *to = make_float4(v[0], v[1], v[2], v[3]);
        }
    }
}
