// Matrix-free application of a finite-element Helmholtz operator on hexahedra of degree 7
// (8 x 8 x 8 Gauss-Lobatto nodes), the inner kernel of a spectral-element solver.
//
// One element per block of 8 x 8 threads; each thread owns a column of eight nodes in registers
// and walks through the layers along it. With D the derivative matrix on the nodes and G the
// symmetric 3 x 3 geometric factor at each node, the element's result is  D^T G D u + lambda M u.
// Derivatives in the layer's plane go through shared memory; those along the column stay in the
// thread (Deville, Fischer, Mund, 'High-Order Methods for Incompressible Fluid Flow', 4.5).

namespace {

constexpr int N = 8;               // nodes per edge
constexpr int NODES = N * N * N;
constexpr int FACTORS = 7;         // G: rr, rs, rt, ss, st, tt, and the mass

}  // namespace

// derivative: [8][8], row i holds the derivatives at node i of all basis functions
// geometry: [elements][7][8][8][8]; u, result: [elements][8][8][8]
extern "C" __global__ void fe_apply(double lambda, const double* __restrict__ derivative,
                                    const double* __restrict__ geometry,
                                    const double* __restrict__ u, double* __restrict__ result) {
    __shared__ double d[N][N + 1];
    __shared__ double layer[N][N + 1], flux_r[N][N + 1], flux_s[N][N + 1];
    const int i = threadIdx.x, j = threadIdx.y;
    const long long element = blockIdx.x;
    const double* ue = u + element * NODES + j * N + i;
    const double* ge = geometry + element * FACTORS * NODES + j * N + i;

    d[j][i] = derivative[j * N + i];
    double column[N], sum[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        column[k] = ue[k * N * N];
        sum[k] = 0.0;
    }

#pragma unroll
    for (int k = 0; k < N; ++k) {
        __syncthreads();
        layer[j][i] = column[k];
        const double grr = ge[(0 * N + k) * N * N], grs = ge[(1 * N + k) * N * N];
        const double grt = ge[(2 * N + k) * N * N], gss = ge[(3 * N + k) * N * N];
        const double gst = ge[(4 * N + k) * N * N], gtt = ge[(5 * N + k) * N * N];
        const double mass = ge[(6 * N + k) * N * N];
        __syncthreads();

        double ur = 0.0, us = 0.0, ut = 0.0;
#pragma unroll
        for (int m = 0; m < N; ++m) {
            ur += d[i][m] * layer[j][m];
            us += d[j][m] * layer[m][i];
            ut += d[k][m] * column[m];
        }
        flux_r[j][i] = grr * ur + grs * us + grt * ut;
        flux_s[j][i] = grs * ur + gss * us + gst * ut;
        double flux_t = grt * ur + gst * us + gtt * ut;
        __syncthreads();

        double here = lambda * mass * column[k];
#pragma unroll
        for (int m = 0; m < N; ++m) {
            here += d[m][i] * flux_r[j][m] + d[m][j] * flux_s[m][i];
            sum[m] += d[k][m] * flux_t;
        }
        sum[k] += here;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) result[element * NODES + (k * N + j) * N + i] = sum[k];
}
