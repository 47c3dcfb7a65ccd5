// Macroscopic neutron cross sections from pointwise data.
//
// For every neutron (an energy and a material) the kernel finds the energy in the grid of each
// nuclide of the material, interpolates the microscopic cross sections linearly between the two
// neighbouring points, and adds them up weighted with the nuclides' number densities. The time
// goes into waiting for scattered loads, so four nuclides are searched in lockstep: four
// independent chains of loads in flight instead of one.

namespace {

constexpr int CHANNELS = 6;  // total, elastic, capture, fission, nu-fission, heating
constexpr int LANES = 4;     // nuclides handled together

}  // namespace

// energy: [neutrons] in MeV, within every grid; material: [neutrons]
// first: [materials + 1], where each material's list starts in nuclide and density
// grid: [nuclides][points], ascending in each row; data: [nuclides][points][CHANNELS] in barn
// result: [CHANNELS][neutrons], per cm
extern "C" __global__ void xs_lookup(int neutrons, int points, const double* __restrict__ energy,
                                     const int* __restrict__ material,
                                     const int* __restrict__ first,
                                     const int* __restrict__ nuclide,
                                     const double* __restrict__ density,
                                     const double* __restrict__ grid,
                                     const double* __restrict__ data, double* __restrict__ result) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= neutrons) return;
    const double e = energy[id];
    const int m = material[id];
    const int begin = first[m], end = first[m + 1];

    double sum[CHANNELS] = {};
    for (int at = begin; at < end; at += LANES) {
        // Places past the end of the list repeat its last nuclide with density zero.
        long long row[LANES];
        double weight[LANES];
        int low[LANES];
#pragma unroll
        for (int k = 0; k < LANES; ++k) {
            int place = min(at + k, end - 1);
            row[k] = (long long)nuclide[place] * points;
            weight[k] = at + k < end ? density[place] : 0.0;
            low[k] = 0;
        }

        // Branch-free binary search: the answer stays within [low, low + span). All grids have
        // the same number of points, so the four searches take the same number of steps.
        for (int span = points - 1; span > 1;) {
            int half = span >> 1;
#pragma unroll
            for (int k = 0; k < LANES; ++k)
                if (grid[row[k] + low[k] + half] <= e) low[k] += half;
            span -= half;
        }

#pragma unroll
        for (int k = 0; k < LANES; ++k) {
            long long point = row[k] + low[k];
            double e0 = grid[point], e1 = grid[point + 1];
            double f = (e - e0) / (e1 - e0);
            const double* left = data + point * CHANNELS;
            const double* right = left + CHANNELS;
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
                sum[c] += weight[k] * (left[c] + f * (right[c] - left[c]));
        }
    }
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c) result[(long long)c * neutrons + id] = sum[c];
}
