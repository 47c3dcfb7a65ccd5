// Gravity and its first two time derivatives, for the sixth-order Hermite integrator.
//
// One thread per target body; sources pass tile by tile through shared memory. Besides the
// acceleration the integrator of Nitadori and Makino (New Astronomy 13, 2008) needs jerk and
// snap, so a thread carries nine sums and nine coordinates of its own through the loop. Sources
// are cut into slices along the grid's y axis, to fill the device; a later kernel adds the slices.

namespace {

// A body as the tile holds it, and as targets load it: 10 doubles.
constexpr int FIELDS = 10;  // position, velocity, acceleration (three each), mass
constexpr int TILE = 128;   // sources in shared memory: one per thread of the block

struct Vector {
    double x, y, z;
};

__device__ __forceinline__ Vector operator-(Vector a, Vector b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

__device__ __forceinline__ double dot(Vector a, Vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

// s a + t b
__device__ __forceinline__ Vector combine(double s, Vector a, double t, Vector b) {
    return {s * a.x + t * b.x, s * a.y + t * b.y, s * a.z + t * b.z};
}

__device__ __forceinline__ void add(Vector& sum, Vector a) {
    sum.x += a.x;
    sum.y += a.y;
    sum.z += a.z;
}

}  // namespace

// body: [FIELDS][n]; derivatives: [slices][9][n], acceleration, jerk and snap
// softening: the square of the softening length
extern "C" __global__ void hermite(int n, double softening, const double* __restrict__ body,
                                   double* __restrict__ derivatives) {
    __shared__ double tile[FIELDS][TILE];
    const int t = threadIdx.x;
    const int i = blockIdx.x * TILE + t, mine = min(i, n - 1);
    const Vector position = {body[mine], body[n + mine], body[2 * n + mine]};
    const Vector velocity = {body[3 * n + mine], body[4 * n + mine], body[5 * n + mine]};
    const Vector acceleration = {body[6 * n + mine], body[7 * n + mine], body[8 * n + mine]};

    const int share = (n + gridDim.y - 1) / gridDim.y;
    const int begin = blockIdx.y * share, end = min(begin + share, n);
    Vector sum = {}, jerk = {}, snap = {};
    for (int first = begin; first < end; first += TILE) {
        __syncthreads();
        if (first + t < end) {
#pragma unroll
            for (int k = 0; k < FIELDS; ++k) tile[k][t] = body[k * n + first + t];
        }
        __syncthreads();
        const int count = min(TILE, end - first);
        for (int j = 0; j < count; ++j) {
            Vector r = Vector{tile[0][j], tile[1][j], tile[2][j]} - position;
            Vector v = Vector{tile[3][j], tile[4][j], tile[5][j]} - velocity;
            Vector a = Vector{tile[6][j], tile[7][j], tile[8][j]} - acceleration;
            // A body does not attract itself: its r, v and a are all zero.
            double inverse = rsqrt(dot(r, r) + softening);
            double inverse2 = inverse * inverse;
            double alpha = dot(r, v) * inverse2;
            double beta = (dot(v, v) + dot(r, a)) * inverse2 + alpha * alpha;
            double strength = tile[9][j] * inverse * inverse2;
            Vector d0 = {strength * r.x, strength * r.y, strength * r.z};
            Vector d1 = combine(strength, v, -3.0 * alpha, d0);
            Vector d2 = combine(1.0, combine(strength, a, -6.0 * alpha, d1), -3.0 * beta, d0);
            add(sum, d0);
            add(jerk, d1);
            add(snap, d2);
        }
    }
    if (i >= n) return;
    double* out = derivatives + (long long)blockIdx.y * 9 * n + i;
    const double results[9] = {sum.x,  sum.y,  sum.z,  jerk.x, jerk.y,
                               jerk.z, snap.x, snap.y, snap.z};
#pragma unroll
    for (int k = 0; k < 9; ++k) out[(long long)k * n] = results[k];
}
