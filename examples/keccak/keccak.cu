// One layer of a Merkle tree: SHA3-256 of pairs of 32-byte nodes.
//
// One thread per hash. A pair of nodes is 64 bytes, less than the sponge's rate of 136, so each
// hash is one run of the Keccak-f[1600] permutation (FIPS 202): 24 rounds over 25 lanes of 64 bits,
// all of which stay in registers. Nodes are stored lane by lane, so that accesses coalesce.

namespace {

typedef unsigned long long Lane;

__constant__ Lane ROUND_CONSTANTS[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000,
    0x000000000000808B, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

// Rotation of lane x + 5 y (step rho).
__device__ constexpr int ROTATION[25] = {0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                                         25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};

__device__ __forceinline__ Lane rotate_left(Lane a, int by) {
    return by == 0 ? a : a << by | a >> (64 - by);
}

__device__ __forceinline__ void round(Lane (&a)[25], Lane constant) {
    // theta: every lane takes in the parity of two neighbouring columns.
    Lane parity[5], b[25];
#pragma unroll
    for (int x = 0; x < 5; ++x) parity[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
#pragma unroll
    for (int x = 0; x < 5; ++x) {
        Lane mix = parity[(x + 4) % 5] ^ rotate_left(parity[(x + 1) % 5], 1);
        // rho and pi: rotate each lane and move (x, y) to (y, 2x + 3y).
#pragma unroll
        for (int y = 0; y < 5; ++y)
            b[y + 5 * ((2 * x + 3 * y) % 5)] = rotate_left(a[x + 5 * y] ^ mix, ROTATION[x + 5 * y]);
    }
    // chi: the only non-linear step.
#pragma unroll
    for (int y = 0; y < 5; ++y)
#pragma unroll
        for (int x = 0; x < 5; ++x)
            a[x + 5 * y] = b[x + 5 * y] ^ (~b[(x + 1) % 5 + 5 * y] & b[(x + 2) % 5 + 5 * y]);
    a[0] ^= constant;  // iota
}

}  // namespace

// children: [8][parents] lanes, the left node's four and then the right one's; parent: [4][parents]
extern "C" __global__ void merkle_layer(int parents, const Lane* __restrict__ children,
                                        Lane* __restrict__ parent) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= parents) return;
    Lane a[25] = {};
#pragma unroll
    for (int k = 0; k < 8; ++k) a[k] = children[(long long)k * parents + i];
    a[8] = 0x06;                   // SHA-3's domain bits and the first bit of the padding
    a[16] = 0x8000000000000000;    // the last bit of the rate
#pragma unroll 4
    for (int r = 0; r < 24; ++r) round(a, ROUND_CONSTANTS[r]);
#pragma unroll
    for (int k = 0; k < 4; ++k) parent[(long long)k * parents + i] = a[k];
}
