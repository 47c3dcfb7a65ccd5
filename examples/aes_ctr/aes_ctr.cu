// AES-128 in counter mode, bitsliced: 32 blocks per thread.
//
// Bit k of byte b of 32 different blocks makes one 32-bit word, a slice; so the state of a thread
// is 128 slices, and a logic operation on slices works on 32 blocks at once, without tables
// (Biham 1997). Byte order, shifts of rows and the S-box's linear parts are renaming and XOR.
// The S-box inverts in GF(2^8) = GF(((2^2)^2)^2), as in Satoh et al. 2001; the two linear maps
// below go from AES's basis to that tower and back (the way back includes the affine map).
// AES itself: FIPS 197; counter mode: NIST SP 800-38A.

namespace {

typedef unsigned Slice;

constexpr int ROUNDS = 10;
constexpr int SLICES = 128;  // bit k of byte b is slice 8 b + k; byte b is row b % 4, column b / 4
constexpr int THREADS = 64;

// Row i holds the input bits whose sum is output bit i.
__device__ constexpr unsigned TO_TOWER[8] = {0x05, 0xC2, 0x24, 0xCA, 0xA2, 0x72, 0x7E, 0xA0};
__device__ constexpr unsigned FROM_TOWER[8] = {0x35, 0x07, 0x03, 0x75, 0x39, 0x3C, 0xD0, 0x54};

// GF(4): hi w + lo with w^2 = w + 1.
struct F4 {
    Slice lo, hi;
};

__device__ __forceinline__ F4 operator^(F4 a, F4 b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
__device__ __forceinline__ F4 operator*(F4 a, F4 b) {
    Slice high = a.hi & b.hi;
    return {(a.lo & b.lo) ^ high, (a.lo & b.hi) ^ (a.hi & b.lo) ^ high};
}
__device__ __forceinline__ F4 square(F4 a) { return {a.lo ^ a.hi, a.hi}; }  // also the inverse
__device__ __forceinline__ F4 times_w(F4 a) { return {a.hi, a.lo ^ a.hi}; }

// GF(16): hi y + lo with y^2 = y + w.
struct F16 {
    F4 lo, hi;
};

__device__ __forceinline__ F16 operator^(F16 a, F16 b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
__device__ __forceinline__ F16 operator*(F16 a, F16 b) {
    F4 high = a.hi * b.hi;
    return {(a.lo * b.lo) ^ times_w(high), (a.lo * b.hi) ^ (a.hi * b.lo) ^ high};
}
__device__ __forceinline__ F16 inverse(F16 a) {
    F4 norm = times_w(square(a.hi)) ^ (a.hi * a.lo) ^ square(a.lo);
    F4 scale = square(norm);
    return {(a.lo ^ a.hi) * scale, a.hi * scale};
}

// GF(256): hi z + lo with z^2 = z + w y. Inverts in place, zero to zero.
__device__ __forceinline__ void invert(Slice (&b)[8]) {
    const F16 lo = {{b[0], b[1]}, {b[2], b[3]}}, hi = {{b[4], b[5]}, {b[6], b[7]}};
    F16 square_hi = hi * hi;
    // w y (hi^2): y (p y + q) = (p + q) y + w p.
    F16 shifted = {times_w(times_w(square_hi.hi)), times_w(square_hi.hi ^ square_hi.lo)};
    F16 scale = inverse(shifted ^ (hi * lo) ^ (lo * lo));
    F16 low = (lo ^ hi) * scale, high = hi * scale;
    b[0] = low.lo.lo, b[1] = low.lo.hi, b[2] = low.hi.lo, b[3] = low.hi.hi;
    b[4] = high.lo.lo, b[5] = high.lo.hi, b[6] = high.hi.lo, b[7] = high.hi.hi;
}

__device__ __forceinline__ void linear(Slice (&to)[8], const Slice* from, const unsigned (&map)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        to[i] = 0;
#pragma unroll
        for (int j = 0; j < 8; ++j)
            if (map[i] >> j & 1) to[i] ^= from[j];
    }
}

__device__ __forceinline__ void substitute(Slice* byte) {
    Slice tower[8], back[8];
    linear(tower, byte, TO_TOWER);
    invert(tower);
    linear(back, tower, FROM_TOWER);
#pragma unroll
    for (int k = 0; k < 8; ++k) byte[k] = 0x63 >> k & 1 ? ~back[k] : back[k];
}

// Bit k of 2 x in AES's field (x^8 = x^4 + x^3 + x + 1).
__device__ __forceinline__ Slice twice(const Slice* x, int k) {
    Slice carried = k == 0 ? 0 : x[k - 1];
    return k == 0 || k == 1 || k == 3 || k == 4 ? carried ^ x[7] : carried;
}

// ShiftRows, MixColumns (not in the last round) and the round key.
__device__ __forceinline__ void diffuse(Slice (&s)[SLICES], const Slice* key, bool mix) {
    Slice next[SLICES];
#pragma unroll
    for (int column = 0; column < 4; ++column) {
        const Slice* in[4];
#pragma unroll
        for (int row = 0; row < 4; ++row) in[row] = s + 8 * (row + 4 * ((column + row) % 4));
#pragma unroll
        for (int row = 0; row < 4; ++row)
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                const Slice *a = in[row], *b = in[(row + 1) % 4], *c = in[(row + 2) % 4],
                            *d = in[(row + 3) % 4];
                Slice value = mix ? twice(a, k) ^ twice(b, k) ^ b[k] ^ c[k] ^ d[k] : a[k];
                const int at = 8 * (row + 4 * column) + k;
                next[at] = value ^ key[at];
            }
    }
#pragma unroll
    for (int at = 0; at < SLICES; ++at) s[at] = next[at];
}

// Swaps bit j of word i with bit i of word j.
__device__ __forceinline__ void transpose(Slice* word) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        const Slice low = 0xFFFFFFFFu / ((1u << step) + 1);  // the lower half of every 2 step bits
#pragma unroll
        for (int i = 0; i < 32; ++i)
            if ((i & step) == 0) {
                Slice swap = (word[i] >> step ^ word[i + step]) & low;
                word[i + step] ^= swap;
                word[i] ^= swap << step;
            }
    }
}

}  // namespace

// keys: [11][4], the expanded key in little-endian words; nonce: the first 12 bytes of a counter
// block, likewise; the rest is the block's number, big endian; plain, cipher: [blocks]
extern "C" __global__ void aes_ctr(int blocks, const unsigned* __restrict__ keys,
                                   const unsigned* __restrict__ nonce,
                                   const uint4* __restrict__ plain, uint4* __restrict__ cipher) {
    // Bits of the round keys, each spread over a word.
    __shared__ Slice key[ROUNDS + 1][SLICES];
    for (int at = threadIdx.x; at < (ROUNDS + 1) * SLICES; at += THREADS)
        key[at / SLICES][at % SLICES] = 0u - (keys[at / 32] >> at % 32 & 1);
    __syncthreads();

    // Word j of a lane is for block 1024 warp + 32 j + lane, so that accesses coalesce.
    const unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * THREADS + threadIdx.x) / 32;
    const Slice of_j[5] = {0xAAAAAAAA, 0xCCCCCCCC, 0xF0F0F0F0, 0xFF00FF00, 0xFFFF0000};
    Slice s[SLICES];
#pragma unroll
    for (int at = 0; at < SLICES; ++at) {
        if (at < 96) {
            s[at] = 0u - (nonce[at / 32] >> at % 32 & 1);
        } else {
            const int bit = 8 * (15 - at / 8) + at % 8;  // of the block's number
            s[at] = bit < 5    ? 0u - (lane >> bit & 1)
                    : bit < 10 ? of_j[bit - 5]
                               : 0u - (warp >> (bit - 10) & 1);
        }
        s[at] ^= key[0][at];
    }

#pragma unroll 1
    for (int round = 1; round <= ROUNDS; ++round) {
#pragma unroll
        for (int byte = 0; byte < 16; ++byte) substitute(s + 8 * byte);
        if (round < ROUNDS) diffuse(s, key[round], true);
    }
    diffuse(s, key[ROUNDS], false);

#pragma unroll
    for (int word = 0; word < 4; ++word) transpose(s + 32 * word);
#pragma unroll
    for (int j = 0; j < 32; ++j) {
        const unsigned block = 1024 * warp + 32 * j + lane;
        if (block < blocks) {
            uint4 text = plain[block];
            cipher[block] = make_uint4(text.x ^ s[j], text.y ^ s[32 + j], text.z ^ s[64 + j],
                                       text.w ^ s[96 + j]);
        }
    }
}
