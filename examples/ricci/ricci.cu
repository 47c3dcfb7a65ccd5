// Ricci tensor of a spatial metric on a grid, and the Hamiltonian constraint of general
// relativity: the heart of a numerical-relativity evolution step.
//
// One thread per interior point. From the six components of the metric and their fourth-order
// finite differences (18 first and 36 second derivatives) it forms the inverse metric, the 18
// Christoffel symbols, and with them
//
//   R_ij = 1/2 g^kl (d_k d_j g_il + d_k d_i g_jl - d_i d_j g_kl - d_k d_l g_ij)
//        + g^kl (G_m,il G^m_jk - G_m,ij G^m_kl),      G_m,ij the symbols of the first kind,
//
// then the curvature scalar, and the constraint R + K^2 - K_ij K^ij - 16 pi rho.

namespace {

constexpr int HALO = 2;

// Component of a symmetric 3 x 3 tensor stored as xx, xy, xz, yy, yz, zz.
__device__ constexpr int pack(int i, int j) {
    return i <= j ? i * (5 - i) / 2 + j : j * (5 - j) / 2 + i;
}

struct Grid {
    const double* field;
    int stride[3];

    // First derivative along axis i, times 12 h.
    __device__ __forceinline__ double d1(int i) const {
        int s = stride[i];
        return 8.0 * (field[s] - field[-s]) - (field[2 * s] - field[-2 * s]);
    }

    // Second derivative along axis i, times 12 h^2.
    __device__ __forceinline__ double d2(int i) const {
        int s = stride[i];
        return 16.0 * (field[s] + field[-s]) - (field[2 * s] + field[-2 * s]) - 30.0 * field[0];
    }

    // Mixed second derivative, times 144 h^2: the first derivative along j of that along i.
    __device__ __forceinline__ double d11(int i, int j) const {
        int s = stride[j];
        return 8.0 * (at(s).d1(i) - at(-s).d1(i)) - (at(2 * s).d1(i) - at(-2 * s).d1(i));
    }

    __device__ __forceinline__ Grid at(int offset) const {
        return {field + offset, {stride[0], stride[1], stride[2]}};
    }
};

}  // namespace

// metric, extrinsic: [6][nz][ny][nx] (xx, xy, xz, yy, yz, zz); density: [nz][ny][nx]
// ricci: [6][nz][ny][nx]; constraint: [nz][ny][nx]; points within two of an edge are left alone
extern "C" __global__ void ricci(int nx, int ny, int nz, double per_h,
                                 const double* __restrict__ metric,
                                 const double* __restrict__ extrinsic,
                                 const double* __restrict__ density, double* __restrict__ ricci,
                                 double* __restrict__ constraint) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + HALO;
    int y = blockIdx.y * blockDim.y + threadIdx.y + HALO;
    int z = blockIdx.z * blockDim.z + threadIdx.z + HALO;
    if (x >= nx - HALO || y >= ny - HALO || z >= nz - HALO) return;
    const int points = nx * ny * nz, here = (z * ny + y) * nx + x;
    const double scale1 = per_h / 12.0, scale2 = per_h * scale1;

    // g[c], dg[i][c] = d_i g_c and ddg[pack(i, j)][c] = d_i d_j g_c.
    double g[6], dg[3][6], ddg[6][6];
#pragma unroll
    for (int c = 0; c < 6; ++c) {
        Grid grid = {metric + c * points + here, {1, nx, nx * ny}};
        g[c] = grid.field[0];
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            dg[i][c] = scale1 * grid.d1(i);
            ddg[pack(i, i)][c] = scale2 * grid.d2(i);
#pragma unroll
            for (int j = i + 1; j < 3; ++j)
                ddg[pack(i, j)][c] = scale1 * scale1 * grid.d11(i, j);
        }
    }

    // Inverse metric from cofactors.
    double inverse[6];
    inverse[0] = g[3] * g[5] - g[4] * g[4];
    inverse[1] = g[2] * g[4] - g[1] * g[5];
    inverse[2] = g[1] * g[4] - g[2] * g[3];
    inverse[3] = g[0] * g[5] - g[2] * g[2];
    inverse[4] = g[1] * g[2] - g[0] * g[4];
    inverse[5] = g[0] * g[3] - g[1] * g[1];
    double per_determinant = 1.0 / (g[0] * inverse[0] + g[1] * inverse[1] + g[2] * inverse[2]);
#pragma unroll
    for (int c = 0; c < 6; ++c) inverse[c] *= per_determinant;

    // Christoffel symbols: lower[m][ij] = G_m,ij and upper[m][ij] = G^m_ij.
    double lower[3][6], upper[3][6];
#pragma unroll
    for (int m = 0; m < 3; ++m)
#pragma unroll
        for (int i = 0; i < 3; ++i)
#pragma unroll
            for (int j = i; j < 3; ++j)
                lower[m][pack(i, j)] = 0.5 * (dg[i][pack(m, j)] + dg[j][pack(m, i)] - dg[m][pack(i, j)]);
#pragma unroll
    for (int m = 0; m < 3; ++m)
#pragma unroll
        for (int c = 0; c < 6; ++c)
            upper[m][c] = inverse[pack(m, 0)] * lower[0][c] + inverse[pack(m, 1)] * lower[1][c]
                        + inverse[pack(m, 2)] * lower[2][c];

    double scalar = 0.0;
#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int j = i; j < 3; ++j) {
            double sum = 0.0;
#pragma unroll
            for (int k = 0; k < 3; ++k)
#pragma unroll
                for (int l = 0; l < 3; ++l) {
                    double term = 0.5 * (ddg[pack(k, j)][pack(i, l)] + ddg[pack(k, i)][pack(j, l)]
                                         - ddg[pack(i, j)][pack(k, l)] - ddg[pack(k, l)][pack(i, j)]);
#pragma unroll
                    for (int m = 0; m < 3; ++m)
                        term += lower[m][pack(i, l)] * upper[m][pack(j, k)]
                              - lower[m][pack(i, j)] * upper[m][pack(k, l)];
                    sum += inverse[pack(k, l)] * term;
                }
            ricci[pack(i, j) * points + here] = sum;
            scalar += (i == j ? 1.0 : 2.0) * inverse[pack(i, j)] * sum;
        }

    // Extrinsic curvature with one index raised: its trace and its square.
    double k[6], mixed[3][3], trace = 0.0, square = 0.0;
#pragma unroll
    for (int c = 0; c < 6; ++c) k[c] = extrinsic[c * points + here];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
#pragma unroll
        for (int j = 0; j < 3; ++j)
            mixed[i][j] = inverse[pack(i, 0)] * k[pack(0, j)] + inverse[pack(i, 1)] * k[pack(1, j)]
                        + inverse[pack(i, 2)] * k[pack(2, j)];
        trace += mixed[i][i];
    }
#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int j = 0; j < 3; ++j) square += mixed[i][j] * mixed[j][i];
    const double pi = 3.14159265358979323846;
    constraint[here] = scalar + trace * trace - square - 16.0 * pi * density[here];
}
