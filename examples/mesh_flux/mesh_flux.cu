// Fluxes of the compressible Euler equations on an unstructured mesh of cells with six faces.
//
// One thread per cell: at each face the states of both sides are extrapolated from the cell
// centres with limited gradients, and the local Lax-Friedrichs (Rusanov) flux between them is
// added up. A neighbour brings 20 numbers and lies anywhere within a window of the numbering, as
// bandwidth-reducing orders leave it; the same 20 numbers are wanted by the neighbour's other
// neighbours, and the cell's own row of face normals is walked one face at a time.

namespace {

constexpr int FACES = 6, VARIABLES = 5, RECORD = 4 * VARIABLES;
constexpr float GAMMA = 1.4f;

struct State {
    float density, x, y, z, energy;  // per volume: mass, momentum, energy
};

struct Flux {
    State flux;
    float speed;  // of the fastest wave
};

__device__ __forceinline__ float component(const State& s, int v) {
    return v == 0 ? s.density : v == 1 ? s.x : v == 2 ? s.y : v == 3 ? s.z : s.energy;
}

// Value and gradient of a cell at a point relative to its centre. The step is cut off at a share
// of the value at the centre, so that density and energy stay positive.
__device__ __forceinline__ float extrapolate(const float* record, int v, float dx, float dy,
                                             float dz) {
    const float centre = record[v];
    const float* slope = record + VARIABLES + 3 * v;
    const float step = slope[0] * dx + slope[1] * dy + slope[2] * dz;
    const float most = 0.2f * fabsf(centre);
    return centre + fminf(fmaxf(step, -most), most);
}

__device__ __forceinline__ State extrapolate(const float* record, float dx, float dy, float dz) {
    return {extrapolate(record, 0, dx, dy, dz), extrapolate(record, 1, dx, dy, dz),
            extrapolate(record, 2, dx, dy, dz), extrapolate(record, 3, dx, dy, dz),
            extrapolate(record, 4, dx, dy, dz)};
}

__device__ __forceinline__ Flux normal_flux(const State& s, float nx, float ny, float nz) {
    const float volume = 1.0f / s.density;
    const float kinetic = 0.5f * volume * (s.x * s.x + s.y * s.y + s.z * s.z);
    const float pressure = (GAMMA - 1.0f) * (s.energy - kinetic);
    const float normal = volume * (s.x * nx + s.y * ny + s.z * nz);
    Flux out;
    out.flux.density = s.density * normal;
    out.flux.x = s.x * normal + pressure * nx;
    out.flux.y = s.y * normal + pressure * ny;
    out.flux.z = s.z * normal + pressure * nz;
    out.flux.energy = (s.energy + pressure) * normal;
    out.speed = fabsf(normal) + sqrtf(GAMMA * pressure * volume);
    return out;
}

}  // namespace

// neighbour: [cells][FACES], number of the neighbour minus the cell's own; numbers that fall
//   outside the mesh stand for the nearest one inside
// face: [cells][FACES][4], unit normal and area
// record: [cells][RECORD], five values, then the gradient of each
// residual: [VARIABLES][cells], outflow of each variable
extern "C" __global__ void mesh_flux(int cells, float size, const int* __restrict__ neighbour,
                                     const float* __restrict__ face,
                                     const float* __restrict__ record,
                                     float* __restrict__ residual) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    const float* __restrict__ own = record + (long long)cell * RECORD;
    float sum[VARIABLES] = {};
    // Rolled: one face at a time keeps the registers down.
#pragma unroll 1
    for (int f = 0; f < FACES; ++f) {
        const long long at = (long long)cell * FACES + f;
        const int index = min(max(cell + neighbour[at], 0), cells - 1);
        const float* __restrict__ other = record + (long long)index * RECORD;
        const float nx = face[4 * at], ny = face[4 * at + 1], nz = face[4 * at + 2];
        const float area = face[4 * at + 3], half = 0.5f * size;
        const State left = extrapolate(own, half * nx, half * ny, half * nz);
        const State right = extrapolate(other, -half * nx, -half * ny, -half * nz);
        const Flux a = normal_flux(left, nx, ny, nz), b = normal_flux(right, nx, ny, nz);
        const float speed = fmaxf(a.speed, b.speed);
#pragma unroll
        for (int v = 0; v < VARIABLES; ++v) {
            const float jump = component(right, v) - component(left, v);
            sum[v] += 0.5f * area *
                      (component(a.flux, v) + component(b.flux, v) - speed * jump);
        }
    }
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) residual[(long long)v * cells + cell] = sum[v];
}
