// Singular values and orthogonal polar factor of many 6 x 6 matrices.
//
// One thread per matrix, everything in registers: one-sided Jacobi rotations (Hestenes 1958) make
// the columns of A V orthogonal, sweep after sweep, until no pair of columns needs turning. Then
// the columns' lengths are the singular values, and with the columns scaled to length one,
// (A V) V^T is the polar factor. How many sweeps a matrix takes depends on the matrix.

namespace {

constexpr int N = 6;
constexpr int MAX_SWEEPS = 12;
constexpr float TOLERANCE = 1e-6f;  // on the cosine of the angle between two columns

__device__ __forceinline__ float dot(const float (&a)[N], const float (&b)[N]) {
    float sum = a[0] * b[0];
#pragma unroll
    for (int k = 1; k < N; ++k) sum += a[k] * b[k];
    return sum;
}

__device__ __forceinline__ void rotate(float (&a)[N], float (&b)[N], float c, float s) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
        float x = a[k], y = b[k];
        a[k] = c * x - s * y;
        b[k] = s * x + c * y;
    }
}

// Makes columns p and q of a orthogonal; returns whether they were not yet.
__device__ __forceinline__ bool orthogonalize(float (&a)[N][N], float (&v)[N][N], int p, int q) {
    float alpha = dot(a[p], a[p]), beta = dot(a[q], a[q]), gamma = dot(a[p], a[q]);
    if (gamma * gamma <= TOLERANCE * TOLERANCE * alpha * beta) return false;
    float zeta = (beta - alpha) / (2.0f * gamma);
    float t = copysignf(1.0f, zeta) / (fabsf(zeta) + sqrtf(1.0f + zeta * zeta));
    float c = 1.0f / sqrtf(1.0f + t * t);
    rotate(a[p], a[q], c, c * t);
    rotate(v[p], v[q], c, c * t);
    return true;
}

}  // namespace

// matrix, polar: [6][6][n], row by row; values: [6][n], descending
extern "C" __global__ void svd6(int n, const float* __restrict__ matrix,
                                float* __restrict__ values, float* __restrict__ polar) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    // a[j] and v[j] are columns.
    float a[N][N], v[N][N];
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j) {
            a[j][i] = matrix[(long long)(N * i + j) * n + id];
            v[j][i] = i == j ? 1.0f : 0.0f;
        }

    bool turned = true;
    for (int sweep = 0; turned && sweep < MAX_SWEEPS; ++sweep) {
        turned = false;
#pragma unroll
        for (int p = 0; p < N - 1; ++p)
#pragma unroll
            for (int q = p + 1; q < N; ++q) turned |= orthogonalize(a, v, p, q);
    }

    float value[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        value[j] = sqrtf(dot(a[j], a[j]));
#pragma unroll
        for (int i = 0; i < N; ++i) a[j][i] /= value[j];
    }
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < N; ++k) sum += a[k][i] * v[k][j];
            polar[(long long)(N * i + j) * n + id] = sum;
        }

    // Odd-even transposition: N rounds sort N numbers.
#pragma unroll
    for (int round = 0; round < N; ++round)
#pragma unroll
        for (int j = round % 2; j + 1 < N; j += 2) {
            float high = fmaxf(value[j], value[j + 1]);
            value[j + 1] = fminf(value[j], value[j + 1]);
            value[j] = high;
        }
#pragma unroll
    for (int j = 0; j < N; ++j) values[(long long)j * n + id] = value[j];
}
