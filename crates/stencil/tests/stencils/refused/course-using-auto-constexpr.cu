namespace sim {
constexpr double kDiffusivity = 1.0e-4;
constexpr int halo{1};
using real = double;
}
using sim::real;
__global__ void diffuse3(const real* __restrict__ c, real* __restrict__ cn, const int nx, const int ny, const int nz) {
    const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const auto j = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    const auto k = static_cast<int>(blockIdx.z * blockDim.z + threadIdx.z);
    if (i < sim::halo || j < sim::halo || k < sim::halo || i >= nx - sim::halo || j >= ny - sim::halo || k >= nz - sim::halo) { return; }
    const auto at = [=](int ii, int jj, int kk) { return (kk * ny + jj) * nx + ii; };
    cn[at(i, j, k)] = c[at(i, j, k)] + sim::kDiffusivity * (c[at(i - 1, j, k)] + c[at(i + 1, j, k)] + c[at(i, j - 1, k)]
        + c[at(i, j + 1, k)] + c[at(i, j, k - 1)] + c[at(i, j, k + 1)] - 6.0 * c[at(i, j, k)]);
}
// expect:
// cuda::subset
//
//   × this is outside the subset of CUDA C that is understood: lambda expression
//     ╭─[course-using-auto-constexpr.cu:12:21]
//  11 │     if (i < sim::halo || j < sim::halo || k < sim::halo || i >= nx - sim::halo || j >= ny - sim::halo || k >= nz - sim::halo) { return; }
//  12 │     const auto at = [=](int ii, int jj, int kk) { return (kk * ny + jj) * nx + ii; };
//     ·                     ────────────────────────────────┬───────────────────────────────
//     ·                                                     ╰── not understood
//  13 │     cn[at(i, j, k)] = c[at(i, j, k)] + sim::kDiffusivity * (c[at(i - 1, j, k)] + c[at(i + 1, j, k)] + c[at(i, j - 1, k)]
//     ╰────
