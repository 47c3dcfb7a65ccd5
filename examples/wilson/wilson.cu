// The Wilson operator of lattice QCD: psi(x) - kappa sum over the eight neighbours.
//
// One thread per site of a periodic four-dimensional lattice. A neighbour's spinor (four spins of
// three colours) is projected to two spins, multiplied with the link between the two sites, a
// complex 3 x 3 matrix, and the other two spins of the result are rebuilt from these (Wilson 1977).
// Gamma matrices are the chiral ones, [[0, B], [B^+, 0]], whose B has one entry per row, a power
// of i. All arrays have the site as their last index; the traffic is 1.5 KB per site.

namespace {

constexpr int DIRECTIONS = 4, SPINS = 4, COLOURS = 3;

struct Complex {
    float re, im;
};

__device__ __forceinline__ Complex operator+(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
}
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ Complex conjugate(Complex a) { return {a.re, -a.im}; }

// i^power z
__device__ __forceinline__ Complex turn(int power, Complex z) {
    switch (power & 3) {
        case 0: return z;
        case 1: return {-z.im, z.re};
        case 2: return {-z.re, -z.im};
        default: return {z.im, -z.re};
    }
}

// B for each direction: the column and the power of i of the entry in rows 0 and 1.
__device__ constexpr int COLUMN[DIRECTIONS][2] = {{1, 0}, {1, 0}, {0, 1}, {0, 1}};
__device__ constexpr int POWER[DIRECTIONS][2] = {{1, 1}, {2, 0}, {1, 3}, {0, 0}};

__device__ __forceinline__ Complex load(const float* __restrict__ field, int component, int sites,
                                        int site) {
    return {field[(long long)(2 * component) * sites + site],
            field[(long long)(2 * component + 1) * sites + site]};
}

// Adds (1 -+ gamma) U psi(neighbour); back: the link ends here instead of starting here.
__device__ __forceinline__ void hop(Complex (&sum)[SPINS][COLOURS], int direction, bool back,
                                    const float* __restrict__ link,
                                    const float* __restrict__ spinor, int sites, int neighbour,
                                    int owner) {
    Complex u[COLOURS][COLOURS];
#pragma unroll
    for (int i = 0; i < COLOURS; ++i)
#pragma unroll
        for (int j = 0; j < COLOURS; ++j) {
            int row = back ? j : i, column = back ? i : j;
            Complex entry = load(link, (direction * COLOURS + row) * COLOURS + column, sites, owner);
            u[i][j] = back ? conjugate(entry) : entry;
        }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const int partner = COLUMN[direction][row], power = POWER[direction][row];
        const int sign = back ? 0 : 2;  // + or -, as a power of i
        Complex half[COLOURS];
#pragma unroll
        for (int c = 0; c < COLOURS; ++c)
            half[c] = load(spinor, COLOURS * row + c, sites, neighbour)
                    + turn(power + sign, load(spinor, COLOURS * (2 + partner) + c, sites, neighbour));
#pragma unroll
        for (int c = 0; c < COLOURS; ++c) {
            Complex g = u[c][0] * half[0] + u[c][1] * half[1] + u[c][2] * half[2];
            sum[row][c] = sum[row][c] + g;
            sum[2 + partner][c] = sum[2 + partner][c] + turn(sign - power, g);
        }
    }
}

}  // namespace

// link: [4][3][3][2][sites], from a site along x, y, z, t: row, column, real and imaginary part
// in, out: [4][3][2][sites], spin, colour, real and imaginary part; x runs fastest in a site's number
extern "C" __global__ void wilson(int nx, int ny, int nz, int nt, float kappa,
                                  const float* __restrict__ link, const float* __restrict__ in,
                                  float* __restrict__ out) {
    const int sites = nx * ny * nz * nt;
    const int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= sites) return;
    const int extent[DIRECTIONS] = {nx, ny, nz, nt};

    Complex sum[SPINS][COLOURS] = {};
    int stride = 1;
#pragma unroll
    for (int direction = 0; direction < DIRECTIONS; ++direction) {
        const int at = site / stride % extent[direction], wrap = stride * extent[direction];
        const int up = at + 1 < extent[direction] ? site + stride : site + stride - wrap;
        const int down = at > 0 ? site - stride : site - stride + wrap;
        hop(sum, direction, false, link, in, sites, up, site);
        hop(sum, direction, true, link, in, sites, down, down);
        stride = wrap;
    }
#pragma unroll
    for (int k = 0; k < SPINS * COLOURS; ++k) {
        Complex here = load(in, k, sites, site), hops = sum[k / COLOURS][k % COLOURS];
        out[(long long)(2 * k) * sites + site] = here.re - kappa * hops.re;
        out[(long long)(2 * k + 1) * sites + site] = here.im - kappa * hops.im;
    }
}
