// Lattice Boltzmann flow solver: one time step on a periodic D3Q19 lattice.
//
// One thread per cell pulls the 19 populations that stream into it, computes density and velocity
// (with half of the body force, Guo et al., Phys. Rev. E 65, 2002), relaxes with two times
// (Ginzburg's TRT: even and odd parts of each pair of opposite directions) whose even rate follows
// a Smagorinsky eddy viscosity, and writes the populations to a second lattice. Populations are
// stored direction by direction.

namespace {

constexpr int Q = 19;

// Directions in pairs: 2k - 1 and 2k are opposite.
__device__ constexpr int CX[Q] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
__device__ constexpr int CY[Q] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
__device__ constexpr int CZ[Q] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};

__device__ constexpr double weight(int q) {
    return q == 0 ? 1.0 / 3.0 : q < 7 ? 1.0 / 18.0 : 1.0 / 36.0;
}

// A neighbour's coordinate on a periodic axis.
__device__ __forceinline__ int wrap(int at, int extent) {
    return at < 0 ? extent - 1 : at == extent ? 0 : at;
}

}  // namespace

// from, to: [19][nz][ny][nx]; moments: [4][nz][ny][nx], density and velocity
// viscosity in lattice units; magic: TRT's product of the two relaxation offsets
extern "C" __global__ void lbm_step(int nx, int ny, int nz, double viscosity, double magic,
                                    double smagorinsky, double fx, double fy, double fz,
                                    const double* __restrict__ from, double* __restrict__ to,
                                    double* __restrict__ moments) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= nx) return;
    const long long cells = (long long)nx * ny * nz;
    const long long here = ((long long)z * ny + y) * nx + x;

    double f[Q];
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        int sx = wrap(x - CX[q], nx), sy = wrap(y - CY[q], ny), sz = wrap(z - CZ[q], nz);
        f[q] = from[q * cells + ((long long)sz * ny + sy) * nx + sx];
    }

    double rho = 0.0, jx = 0.5 * fx, jy = 0.5 * fy, jz = 0.5 * fz;
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        rho += f[q];
        jx += CX[q] * f[q];
        jy += CY[q] * f[q];
        jz += CZ[q] * f[q];
    }
    double ux = jx / rho, uy = jy / rho, uz = jz / rho;
    double uu = ux * ux + uy * uy + uz * uz;

    // Second moments of the non-equilibrium part give the strain rate.
    double equilibrium[Q];
    double pxx = 0, pyy = 0, pzz = 0, pxy = 0, pyz = 0, pzx = 0;
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        double cu = CX[q] * ux + CY[q] * uy + CZ[q] * uz;
        equilibrium[q] = weight(q) * rho * (1.0 + 3.0 * cu + 4.5 * cu * cu - 1.5 * uu);
        double excess = f[q] - equilibrium[q];
        pxx += CX[q] * CX[q] * excess;
        pyy += CY[q] * CY[q] * excess;
        pzz += CZ[q] * CZ[q] * excess;
        pxy += CX[q] * CY[q] * excess;
        pyz += CY[q] * CZ[q] * excess;
        pzx += CZ[q] * CX[q] * excess;
    }
    double norm = sqrt(pxx * pxx + pyy * pyy + pzz * pzz + 2.0 * (pxy * pxy + pyz * pyz + pzx * pzx));
    double tau0 = 0.5 + 3.0 * viscosity;
    double c = 18.0 * 1.4142135623730951 * smagorinsky * smagorinsky;
    double tau_even = 0.5 * (tau0 + sqrt(tau0 * tau0 + c * norm / rho));
    double tau_odd = 0.5 + magic / (tau_even - 0.5);
    double even = 1.0 / tau_even, odd = 1.0 / tau_odd;

    // Guo's source term, split into even and odd parts like the populations.
    double uf = ux * fx + uy * fy + uz * fz;
    to[here] = f[0] - even * (f[0] - equilibrium[0]) - (1.0 - 0.5 * even) * weight(0) * 3.0 * uf;
#pragma unroll
    for (int q = 1; q < Q; q += 2) {
        int r = q + 1;
        double sum = 0.5 * (f[q] + f[r] - equilibrium[q] - equilibrium[r]);
        double difference = 0.5 * (f[q] - f[r] - equilibrium[q] + equilibrium[r]);
        double cu = CX[q] * ux + CY[q] * uy + CZ[q] * uz;
        double cf = CX[q] * fx + CY[q] * fy + CZ[q] * fz;
        double source_even = weight(q) * (9.0 * cu * cf - 3.0 * uf) * (1.0 - 0.5 * even);
        double source_odd = weight(q) * 3.0 * cf * (1.0 - 0.5 * odd);
        to[q * cells + here] = f[q] - even * sum - odd * difference + source_even + source_odd;
        to[r * cells + here] = f[r] - even * sum + odd * difference + source_even - source_odd;
    }
    moments[here] = rho;
    moments[cells + here] = ux;
    moments[2 * cells + here] = uy;
    moments[3 * cells + here] = uz;
}
