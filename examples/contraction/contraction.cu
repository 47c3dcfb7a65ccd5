// Contraction of two complex four-index tensors, as in coupled-cluster theory:
//
//     C[i][a][j][b] = sum over k, l of  A[k][i][l][a] * conj(B[l][j][k][b])
//
// With (i, a) as rows, (j, b) as columns and (k, l) as the inner index this is a complex matrix
// product of permuted operands. A block computes a tile of 32 rows by 32 columns with 8 x 8
// threads; each keeps a 4 x 4 tile of complex sums in registers and reads panels of eight inner
// indices from shared memory.

namespace {

constexpr int TILE = 32;     // rows and columns per block
constexpr int PANEL = 8;     // inner indices per step
constexpr int EDGE = 8;      // threads per side
constexpr int OWN = TILE / EDGE;

}  // namespace

// Occupied indices (k, l, i, j) run to `occupied`, virtual ones (a, b) to `virtuals`; all tensors
// are dense, the last index is contiguous, complex numbers are pairs of doubles. occupied *
// virtuals must be a multiple of 32 and occupied^2 one of 8.
extern "C" __global__ void contraction(int occupied, int virtuals, const double2* __restrict__ a,
                                       const double2* __restrict__ b, double2* __restrict__ c) {
    __shared__ double2 rows[PANEL][TILE], columns[PANEL][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * EDGE + tx;
    const int edge = occupied * virtuals;  // rows (i, a) and columns (j, b) of the result

    double re[OWN][OWN] = {}, im[OWN][OWN] = {};
    const int inner = occupied * occupied;
    for (int first = 0; first < inner; first += PANEL) {
        __syncthreads();
        // The 64 threads fetch 8 x 32 numbers of each operand, 32 neighbours at a time.
#pragma unroll
        for (int part = 0; part < PANEL * TILE / (EDGE * EDGE); ++part) {
            int slot = part * EDGE * EDGE + thread, p = slot / TILE, q = slot % TILE;
            int k = (first + p) / occupied, l = (first + p) % occupied;
            int row = blockIdx.y * TILE + q, column = blockIdx.x * TILE + q;
            int i = row / virtuals, va = row % virtuals;
            int j = column / virtuals, vb = column % virtuals;
            rows[p][q] = a[((k * occupied + i) * occupied + l) * virtuals + va];
            columns[p][q] = b[((l * occupied + j) * occupied + k) * virtuals + vb];
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < PANEL; ++p) {
            double2 x[OWN], y[OWN];
#pragma unroll
            for (int m = 0; m < OWN; ++m) {
                x[m] = rows[p][ty + m * EDGE];
                y[m] = columns[p][tx + m * EDGE];
            }
#pragma unroll
            for (int m = 0; m < OWN; ++m)
#pragma unroll
                for (int n = 0; n < OWN; ++n) {
                    re[m][n] += x[m].x * y[n].x + x[m].y * y[n].y;
                    im[m][n] += x[m].y * y[n].x - x[m].x * y[n].y;
                }
        }
    }
#pragma unroll
    for (int m = 0; m < OWN; ++m)
#pragma unroll
        for (int n = 0; n < OWN; ++n) {
            long long row = blockIdx.y * TILE + ty + m * EDGE;
            int column = blockIdx.x * TILE + tx + n * EDGE;
            c[row * edge + column] = make_double2(re[m][n], im[m][n]);
        }
}
