// Many small tridiagonal systems by elimination (Thomas), one thread per system.
//
// A system's coefficients lie next to each other, as line relaxation or implicit finance code
// stores them, so a thread walks five private rows at once: four in, the solution out, and the
// ratios of the upper diagonal, which the way back needs, in a row of scratch memory.

// lower, diagonal, upper, right: [systems][n]; lower[.][0] and upper[.][n-1] are not used
// ratio: [systems][n], scratch; solution: [systems][n]
extern "C" __global__ void tridiag(int systems, int n, const float* __restrict__ lower,
                                   const float* __restrict__ diagonal,
                                   const float* __restrict__ upper,
                                   const float* __restrict__ right, float* __restrict__ ratio,
                                   float* __restrict__ solution) {
    const int system = blockIdx.x * blockDim.x + threadIdx.x;
    if (system >= systems) return;
    const long long row = (long long)system * n;
    float inverse = 1.0f / diagonal[row];
    float above = upper[row] * inverse, value = right[row] * inverse;
    ratio[row] = above;
    solution[row] = value;
#pragma unroll 1
    for (int i = 1; i < n; ++i) {
        const float below = lower[row + i];
        inverse = 1.0f / (diagonal[row + i] - below * above);
        above = upper[row + i] * inverse;
        value = (right[row + i] - below * value) * inverse;
        ratio[row + i] = above;
        solution[row + i] = value;
    }
#pragma unroll 1
    for (int i = n - 2; i >= 0; --i) {
        value = solution[row + i] - ratio[row + i] * value;
        solution[row + i] = value;
    }
}
