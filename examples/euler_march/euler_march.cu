// Divergence of the Euler fluxes of a compressible gas, by fourth-order central differences.
//
// A block of 32 x 32 threads owns as many columns of the grid and marches through the planes of
// its slab. Differences along z come from a queue of the fluxes of five planes, 25 doubles per
// thread that shift by one plane a step; along x and y the neighbours' conserved variables are
// read (the caches hold them: neighbouring threads use the same ones) and turned into fluxes. Such
// a block has 1024 threads, so a thread has 64 registers, and the queue alone takes 50.

namespace {

constexpr int SIDE = 32;
constexpr int HALO = 2;
constexpr int FIELDS = 5;  // density, momentum along x, y and z, energy density
constexpr int PLANES = 2 * HALO + 1;
constexpr double GAMMA = 1.4;

// The flux along one axis (0, 1, 2) of the conserved variables q.
__device__ __forceinline__ void flux(const double (&q)[FIELDS], int axis, double (&f)[FIELDS]) {
    double velocity = q[1 + axis] / q[0];
    double kinetic = 0.5 * (q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) / q[0];
    double pressure = (GAMMA - 1.0) * (q[4] - kinetic);
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) f[k] = velocity * q[k];
    f[1 + axis] += pressure;
    f[4] += velocity * pressure;
}

__device__ __forceinline__ void load(const double* __restrict__ field, long long cells,
                                     long long at, double (&q)[FIELDS]) {
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) q[k] = field[k * cells + at];
}

// Subtracts the derivative along an axis; stride: from a cell to the next one there.
__device__ __forceinline__ void subtract_derivative(const double* __restrict__ field,
                                                    long long cells, long long at, int stride,
                                                    int axis, double scale,
                                                    double (&rate)[FIELDS]) {
#pragma unroll
    for (int distance = 1; distance <= HALO; ++distance) {
        const double weight = distance == 1 ? 8.0 * scale : -scale;
        double q[FIELDS], f[FIELDS];
        load(field, cells, at + distance * stride, q);
        flux(q, axis, f);
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) rate[k] -= weight * f[k];
        load(field, cells, at - distance * stride, q);
        flux(q, axis, f);
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) rate[k] += weight * f[k];
    }
}

}  // namespace

// field: [FIELDS][nz + 4][ny + 4][nx + 4], two ghost cells on every side; rate: [FIELDS][nz][ny][nx]
// scale_x: 1 / (12 dx), and so on; planes: how many a block marches through
extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
euler_march(int nx, int ny, int nz, int planes, double scale_x, double scale_y, double scale_z,
            const double* __restrict__ field, double* __restrict__ rate) {
    const int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    if (x >= nx || y >= ny) return;
    const int row = nx + 2 * HALO, plane = row * (ny + 2 * HALO);
    const long long cells = (long long)plane * (nz + 2 * HALO);
    const long long inner = (long long)nx * ny * nz;
    const int first = blockIdx.z * planes, last = min(first + planes, nz);
    // The cell whose flux goes into the queue next.
    long long at = (long long)first * plane + (y + HALO) * row + x + HALO;

    double queue[PLANES][FIELDS], q[FIELDS];
#pragma unroll
    for (int p = 1; p < PLANES; ++p, at += plane) {
        load(field, cells, at, q);
        flux(q, 2, queue[p]);
    }
    for (int z = first; z < last; ++z, at += plane) {
#pragma unroll
        for (int p = 1; p < PLANES; ++p)
#pragma unroll
            for (int k = 0; k < FIELDS; ++k) queue[p - 1][k] = queue[p][k];
        load(field, cells, at, q);
        flux(q, 2, queue[PLANES - 1]);

        double change[FIELDS];
#pragma unroll
        for (int k = 0; k < FIELDS; ++k)
            change[k] = scale_z * (queue[4][k] - queue[0][k] - 8.0 * (queue[3][k] - queue[1][k]));
        const long long here = at - HALO * plane;
        subtract_derivative(field, cells, here, 1, 0, scale_x, change);
        subtract_derivative(field, cells, here, row, 1, scale_y, change);
#pragma unroll
        for (int k = 0; k < FIELDS; ++k)
            rate[k * inner + ((long long)z * ny + y) * nx + x] = change[k];
    }
}
