// Local alignment scores with affine gaps: the first pass of a read mapper.
//
// One thread aligns one read with one window of the genome (Smith and Waterman 1981, gaps as in
// Gotoh 1982). The score matrix is cut into strips of 32 read letters. While a thread walks down
// the window, the strip's current row lives in registers: a score H and a gap score F for each of
// the 32 columns. A strip hands its last column to the next one through a scratch buffer, two
// 16-bit scores in one word. Letters are two bits.

namespace {

constexpr int STRIP = 32;

__device__ __forceinline__ int low_half(unsigned word) { return (short)(word & 0xFFFF); }
__device__ __forceinline__ int high_half(unsigned word) { return (short)(word >> 16); }

__device__ __forceinline__ unsigned pack(int low, int high) {
    return (unsigned)(low & 0xFFFF) | (unsigned)high << 16;
}

}  // namespace

// read: [strips][pairs], 32 letters each; window: [rows / 32][pairs]; rows: a multiple of 32
// edge: [rows][pairs], scratch; score: [pairs], the best local score
// open: cost of a gap's first letter; extend: of every further one
extern "C" __global__ void smith_waterman(int pairs, int strips, int rows, int match, int mismatch,
                                          int open, int extend,
                                          const unsigned long long* __restrict__ read,
                                          const unsigned long long* __restrict__ window,
                                          unsigned* __restrict__ edge, int* __restrict__ score) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    int best = 0;
    for (int strip = 0; strip < strips; ++strip) {
        const unsigned long long letters = read[(long long)strip * pairs + pair];
        int h[STRIP], f[STRIP];
#pragma unroll
        for (int c = 0; c < STRIP; ++c) h[c] = f[c] = 0;
        int corner = 0;  // H left of the strip, one row up
        unsigned long long column = 0;
        for (int row = 0; row < rows; ++row) {
            if (row % STRIP == 0) column = window[(long long)(row / STRIP) * pairs + pair];
            const unsigned letter = column & 3;
            column >>= 2;

            unsigned* const border = edge + (long long)row * pairs + pair;
            const unsigned before = strip > 0 ? *border : 0;
            int left = low_half(before), e = high_half(before);
            int diagonal = corner;
            corner = left;
#pragma unroll
            for (int c = 0; c < STRIP; ++c) {
                bool same = (unsigned)(letters >> 2 * c & 3) == letter;
                // Gaps along the read (e) and along the window (f); a local score is never below 0.
                e = max(left - open, e - extend);
                f[c] = max(h[c] - open, f[c] - extend);
                left = max(max(diagonal + (same ? match : -mismatch), 0), max(e, f[c]));
                diagonal = h[c];
                h[c] = left;
                best = max(best, left);
            }
            *border = pack(left, e);
        }
    }
    score[pair] = best;
}
