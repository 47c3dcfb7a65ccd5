// Many 11 x 11 linear systems: LU decomposition with partial pivoting, one system per thread.
//
// Implicit chemistry and Newton steps of small element models end in such batches. The matrix and
// the right-hand side stay in registers, 132 doubles, so nothing may be indexed at run time: a row
// exchange is a row of selects against every candidate. More than 255 registers would be needed;
// the compiler spills the rest.

namespace {

constexpr int N = 11;

}  // namespace

// matrix: [11][11][n], row by row; right, solution: [11][n]; determinant: [n]
extern "C" __global__ void lu11(int n, const double* __restrict__ matrix,
                                const double* __restrict__ right, double* __restrict__ solution,
                                double* __restrict__ determinant) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    double a[N][N], x[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = 0; j < N; ++j) a[i][j] = matrix[(long long)(N * i + j) * n + id];
        x[i] = right[(long long)i * n + id];
    }

    double product = 1.0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        // The row whose entry in column k is largest comes up to row k.
        int pivot = k;
        double largest = fabs(a[k][k]);
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            bool larger = fabs(a[i][k]) > largest;
            pivot = larger ? i : pivot;
            largest = larger ? fabs(a[i][k]) : largest;
        }
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            const bool exchange = pivot == i;
#pragma unroll
            for (int j = k; j < N; ++j) {
                double upper = a[k][j];
                a[k][j] = exchange ? a[i][j] : upper;
                a[i][j] = exchange ? upper : a[i][j];
            }
            double upper = x[k];
            x[k] = exchange ? x[i] : upper;
            x[i] = exchange ? upper : x[i];
        }
        product *= pivot == k ? a[k][k] : -a[k][k];

        const double inverse = 1.0 / a[k][k];
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            const double factor = a[i][k] * inverse;
#pragma unroll
            for (int j = k + 1; j < N; ++j) a[i][j] -= factor * a[k][j];
            x[i] -= factor * x[k];
        }
    }

#pragma unroll
    for (int k = N - 1; k >= 0; --k) {
#pragma unroll
        for (int j = k + 1; j < N; ++j) x[k] -= a[k][j] * x[j];
        x[k] /= a[k][k];
        solution[(long long)k * n + id] = x[k];
    }
    determinant[id] = product;
}
