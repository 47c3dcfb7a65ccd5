// Charge spreading of particle-mesh Ewald electrostatics: every particle adds its charge to the
// 5 x 5 x 5 mesh points around it with the weights of fifth-order cardinal B-splines (Essmann et
// al., J. Chem. Phys. 103, 1995).
//
// The mesh holds 64-bit fixed-point numbers, so that atomic additions commute and the result does
// not depend on their order. One thread per particle, which keeps all fifteen weights in registers.

namespace {

constexpr int ORDER = 5;
constexpr float FIXED_POINT = 4294967296.0f;  // 2^32 per unit charge

// Weights of the points at floor(u) - (ORDER - 1) ... floor(u) for fraction f of u, by raising the
// order from 2 in steps of one (de Boor's recurrence).
__device__ __forceinline__ void spline(float f, float (&w)[ORDER]) {
    w[0] = 1.0f - f;
    w[1] = f;
#pragma unroll
    for (int order = 3; order <= ORDER; ++order) {
        const float scale = 1.0f / (order - 1);
        w[order - 1] = scale * f * w[order - 2];
#pragma unroll
        for (int k = order - 2; k > 0; --k)
            w[k] = scale * ((f + (order - 1 - k)) * w[k - 1] + (k + 1 - f) * w[k]);
        w[0] = scale * (1.0f - f) * w[0];
    }
}

// The mesh coordinate `steps` places before `at` on a periodic axis.
__device__ __forceinline__ int before(int at, int steps, int extent) {
    int place = at - steps;
    return place < 0 ? place + extent : place;
}

}  // namespace

// particle: [n] of x, y, z in units of the box edge, and the charge
// mesh: [nz][ny][nx]
extern "C" __global__ void spline_scatter(int n, int nx, int ny, int nz,
                                          const float4* __restrict__ particle,
                                          unsigned long long* __restrict__ mesh) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = particle[i];
    float ux = p.x * nx, uy = p.y * ny, uz = p.z * nz;
    int ix = min((int)ux, nx - 1), iy = min((int)uy, ny - 1), iz = min((int)uz, nz - 1);
    float wx[ORDER], wy[ORDER], wz[ORDER];
    spline(ux - ix, wx);
    spline(uy - iy, wy);
    spline(uz - iz, wz);

    int column[ORDER];
#pragma unroll
    for (int a = 0; a < ORDER; ++a) column[a] = before(ix, ORDER - 1 - a, nx);
#pragma unroll
    for (int c = 0; c < ORDER; ++c) {
        int plane = before(iz, ORDER - 1 - c, nz) * ny;
        float qz = p.w * FIXED_POINT * wz[c];
#pragma unroll
        for (int b = 0; b < ORDER; ++b) {
            unsigned long long* line = mesh + (long long)(plane + before(iy, ORDER - 1 - b, ny)) * nx;
            float qyz = qz * wy[b];
#pragma unroll
            for (int a = 0; a < ORDER; ++a)
                atomicAdd(line + column[a], (unsigned long long)__float2ll_rn(qyz * wx[a]));
        }
    }
}
