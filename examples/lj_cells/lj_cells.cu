// Short-range forces of molecular dynamics: Lennard-Jones and the real-space part of Ewald's sum.
//
// One thread per particle; a cell is as wide as the cutoff and holds 32 particles, a warp's worth,
// so all threads of a warp read the same partners from the 27 cells around theirs. Most partners
// are beyond the cutoff, and which ones differs from thread to thread. Each thread sums up force,
// energy and the six distinct entries of the virial.

namespace {

constexpr int CAPACITY = 32;  // particles of a cell
constexpr int TYPES = 4;

}  // namespace

// Terms of a pair of types. Those of Lennard-Jones are shifted by force and energy, so that they end
// at the cutoff without a jump.
struct Pair {
    float c6, c12, force, energy, charges;
};

// position: [3][cells * CAPACITY], within the cell; type: [cells * CAPACITY]; the box is periodic
// sigma, epsilon, charge: [TYPES], mixed by the rules of Lorentz and Berthelot
// edge: width of a cell, and the cutoff; beta: Ewald's splitting parameter
// closest: smallest squared distance that is told from zero; result: [10][cells * CAPACITY],
// force, energy, virial (xx, yy, zz, xy, yz, zx)
extern "C" __global__ void lj_cells(int cells_x, int cells_y, int cells_z, float edge, float beta,
                                    float closest, const float* __restrict__ position,
                                    const int* __restrict__ type, const float* __restrict__ sigma,
                                    const float* __restrict__ epsilon,
                                    const float* __restrict__ charge,
                                    float* __restrict__ result) {
    __shared__ Pair pairs[TYPES * TYPES];
    const float cutoff2 = edge * edge;
    if (threadIdx.x < TYPES * TYPES) {
        const int a = threadIdx.x / TYPES, b = threadIdx.x % TYPES;
        const float length = 0.5f * (sigma[a] + sigma[b]), length3 = length * length * length;
        const float c6 = 4.0f * sqrtf(epsilon[a] * epsilon[b]) * length3 * length3;
        const float c12 = c6 * length3 * length3;
        const float r6 = 1.0f / (cutoff2 * cutoff2 * cutoff2);
        pairs[threadIdx.x] = {c6, c12, (12.0f * c12 * r6 - 6.0f * c6) * r6 / cutoff2,
                              (c12 * r6 - c6) * r6, charge[a] * charge[b]};
    }
    __syncthreads();

    const int cells = cells_x * cells_y * cells_z, particles = cells * CAPACITY;
    const int me = blockIdx.x * blockDim.x + threadIdx.x;
    if (me >= particles) return;
    const int cell = me / CAPACITY;
    const int cx = cell % cells_x, cy = cell / cells_x % cells_y, cz = cell / (cells_x * cells_y);
    const float x = position[me], y = position[particles + me], z = position[2 * particles + me];
    const Pair* const mine = pairs + TYPES * type[me];

    float fx = 0, fy = 0, fz = 0, energy = 0;
    float xx = 0, yy = 0, zz = 0, xy = 0, yz = 0, zx = 0;
    for (int around = 0; around < 27; ++around) {
        const int sx = around % 3 - 1, sy = around / 3 % 3 - 1, sz = around / 9 - 1;
        const int nx = (cx + sx + cells_x) % cells_x, ny = (cy + sy + cells_y) % cells_y;
        const int nz = (cz + sz + cells_z) % cells_z;
        const int first = ((nz * cells_y + ny) * cells_x + nx) * CAPACITY;
        const float ox = x - sx * edge, oy = y - sy * edge, oz = z - sz * edge;
        for (int other = first; other < first + CAPACITY; ++other) {
            const float dx = ox - position[other], dy = oy - position[particles + other];
            const float dz = oz - position[2 * particles + other];
            const float distance2 = dx * dx + dy * dy + dz * dz;
            if (distance2 >= cutoff2 || other == me) continue;
            const float r2 = fmaxf(distance2, closest);
            const Pair pair = mine[type[other]];
            const float inverse = rsqrtf(r2), inverse2 = inverse * inverse;
            const float r6 = inverse2 * inverse2 * inverse2;
            const float split = beta * r2 * inverse;
            const float screened = pair.charges * erfcf(split) * inverse;
            const float gauss = pair.charges * 1.12837917f * beta * expf(-split * split);
            // The force is this times the distance vector.
            const float f = (12.0f * pair.c12 * r6 - 6.0f * pair.c6) * r6 * inverse2 - pair.force
                          + (screened + gauss) * inverse2;
            energy += (pair.c12 * r6 - pair.c6) * r6 - pair.energy
                    + 0.5f * pair.force * (r2 - cutoff2) + screened;
            fx += f * dx;
            fy += f * dy;
            fz += f * dz;
            xx += f * dx * dx;
            yy += f * dy * dy;
            zz += f * dz * dz;
            xy += f * dx * dy;
            yz += f * dy * dz;
            zx += f * dz * dx;
        }
    }
    const float results[10] = {fx, fy, fz, energy, xx, yy, zz, xy, yz, zx};
#pragma unroll
    for (int k = 0; k < 10; ++k) result[k * particles + me] = results[k];
}
