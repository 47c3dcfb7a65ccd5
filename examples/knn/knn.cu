// The 16 nearest neighbours of every point, by brute force.
//
// One thread per query. Blocks of 1024 threads load the reference points tile by tile into shared
// memory; every thread keeps its 16 best candidates, sorted, in registers: a distance and an index
// each. A better candidate enters by an insertion whose steps are all selects, so that nothing is
// ever indexed by a run-time value. Equal distances keep the smaller index.

namespace {

constexpr int K = 16;

}  // namespace

// Points are triples stored axis by axis: queries: [3][n], points: [3][m]
// index, distance: [16][n], squared distances in ascending order
extern "C" __global__ void __launch_bounds__(1024)
knn(int n, int m, const float* __restrict__ queries, const float* __restrict__ points,
    int* __restrict__ index, float* __restrict__ distance) {
    extern __shared__ float tile[];  // [3][threads]
    const int threads = blockDim.x, t = threadIdx.x;
    const int q = blockIdx.x * threads + t;
    const int query = min(q, n - 1);
    const float x = queries[query], y = queries[n + query], z = queries[2 * n + query];

    float best[K];
    int who[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
        best[k] = __int_as_float(0x7F800000);  // infinity
        who[k] = -1;
    }

    for (int first = 0; first < m; first += threads) {
        __syncthreads();
        if (first + t < m) {
#pragma unroll
            for (int axis = 0; axis < 3; ++axis)
                tile[axis * threads + t] = points[axis * m + first + t];
        }
        __syncthreads();
        const int count = min(threads, m - first);
        for (int p = 0; p < count; ++p) {
            float dx = tile[p] - x, dy = tile[threads + p] - y, dz = tile[2 * threads + p] - z;
            // Fixed rounding, so that every build and the reference order neighbours alike.
            float d = __fadd_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)), __fmul_rn(dz, dz));
            if (d < best[K - 1]) {
                int id = first + p;
                // From the far end: each place takes the newcomer, its left neighbour, or stays.
#pragma unroll
                for (int k = K - 1; k > 0; --k) {
                    bool shift = d < best[k - 1], enter = d < best[k];
                    who[k] = shift ? who[k - 1] : enter ? id : who[k];
                    best[k] = shift ? best[k - 1] : enter ? d : best[k];
                }
                who[0] = d < best[0] ? id : who[0];
                best[0] = fminf(d, best[0]);
            }
        }
    }
    if (q >= n) return;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        index[k * n + q] = who[k];
        distance[k * n + q] = best[k];
    }
}
