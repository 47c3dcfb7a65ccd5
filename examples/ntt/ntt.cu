// Number-theoretic transforms of 4096 points modulo p = 2^64 - 2^32 + 1, one per block.
//
// Proof systems multiply polynomials with this prime because it is cheap to reduce by: 2^64 is
// 2^32 - 1 and 2^96 is -1. Also, 2^12 is a 16th root of one, so that the twiddle factors within a
// 16-point transform are shifts. 4096 = 16 * 16 * 16: every thread holds 16 points, does three
// 16-point transforms, and between them the block exchanges through shared memory. With
// n = 256 j + 16 j' + t and output k + 16 k' + 256 k'' the transform is
//   sum_t w16^(t k'') w256^(t k') sum_j' w16^(j' k') w4096^((16 j' + t) k) sum_j w16^(j k).

namespace {

typedef unsigned long long Word;

constexpr int RADIX = 16, THREADS = 256, POINTS = 4096;
constexpr Word PRIME = 0xFFFFFFFF00000001, EPSILON = 0xFFFFFFFF;  // 2^64 modulo the prime

// Powers 0 to 15 of the 4096th root w, and of w^16; w^256 is 2^12.
__constant__ Word FINE[RADIX] = {
    0x0000000000000001, 0x984EC5194D005735, 0x7A591595E67C27E8, 0xE0428BB72ED7342E,
    0x3DA05FEE70C4F2BA, 0x400A70E5C5F8CE33, 0x034DCBA58AC5003E, 0x7B81570EC9C3FB2D,
    0xC843F1629460B551, 0x9B245E0853BB56CE, 0xFF5C2066B0272B4B, 0x1AAD7E6CC54703A8,
    0x39AFAD6C328B16F6, 0x30A727CA9E5732BC, 0x56EC1E3EFB05020A, 0x027B13B2934DDE7C,
};
__constant__ Word COARSE[RADIX] = {
    0x0000000000000001, 0xC2DED1724375E12E, 0x000001FFFDFFFE00, 0x05B5B114FC207D1C,
    0x0000000000000008, 0x16F68B981BAF096A, 0x00000FFFEFFFF000, 0x2DAD88A7E103E8E0,
    0x0000000000000040, 0xB7B45CC0DD784B50, 0x00007FFF7FFF8000, 0x6D6C4540081F46FF,
    0x0000000000000200, 0xBDA2E60BEBC25A7B, 0x0003FFFBFFFC0000, 0x6B622A0340FA37F5,
};

__device__ __forceinline__ Word add(Word a, Word b) {
    Word sum = a + b;
    return sum < a || sum >= PRIME ? sum - PRIME : sum;
}

__device__ __forceinline__ Word subtract(Word a, Word b) { return a < b ? a - b + PRIME : a - b; }

// high 2^64 + low.
__device__ __forceinline__ Word reduce(Word high, Word low) {
    Word top = high >> 32, middle = (high & 0xFFFFFFFF) * EPSILON;
    Word difference = low - top;  // 2^96 is -1
    if (low < top) difference -= EPSILON;
    Word sum = difference + middle;
    if (sum < middle) sum += EPSILON;
    return sum >= PRIME ? sum - PRIME : sum;
}

__device__ __forceinline__ Word multiply(Word a, Word b) { return reduce(__umul64hi(a, b), a * b); }

// a 2^(12 e) for e below 8.
__device__ __forceinline__ Word twiddle(Word a, int e) {
    const int by = 12 * e;
    if (by == 0) return a;
    if (by < 64) return reduce(a >> (64 - by), a << by);
    // 2^64 is 2^32 - 1.
    return subtract(reduce(a >> (96 - by), a << (by - 32)), reduce(a >> (128 - by), a << (by - 64)));
}

// Where the transform leaves output k: its four bits reversed.
__device__ __forceinline__ constexpr int place(int k) {
    return (k & 1) << 3 | (k & 2) << 1 | (k & 4) >> 1 | (k & 8) >> 3;
}

// In place: a[place(k)] = sum_j a[j] w16^(j k), decimated in frequency.
__device__ __forceinline__ void transform(Word (&a)[RADIX]) {
#pragma unroll
    for (int half = RADIX / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < RADIX; ++i)
            if ((i & half) == 0) {
                Word x = a[i], y = a[i + half];
                a[i] = add(x, y);
                a[i + half] = twiddle(subtract(x, y), i % half * (RADIX / 2 / half));
            }
}

// Multiplies output k by root^k.
__device__ __forceinline__ void turn(Word (&a)[RADIX], Word root) {
    Word power = root;
#pragma unroll
    for (int k = 1; k < RADIX; ++k) {
        a[place(k)] = multiply(a[place(k)], power);
        if (k + 1 < RADIX) power = multiply(power, root);
    }
}

}  // namespace

// in, out: [transforms][POINTS], residues below the prime, both in natural order
extern "C" __global__ void __launch_bounds__(THREADS)
ntt4096(const Word* __restrict__ in, Word* __restrict__ out) {
    // Rows of the two exchanges, padded against bank conflicts.
    constexpr int WIDE = THREADS + RADIX, NARROW = RADIX + 1;
    __shared__ Word shared[RADIX * WIDE];
    const int t = threadIdx.x, high = t / RADIX, low = t % RADIX;
    const long long first = (long long)blockIdx.x * POINTS;

    Word a[RADIX];
#pragma unroll
    for (int j = 0; j < RADIX; ++j) a[j] = in[first + j * THREADS + t];
    transform(a);
    turn(a, multiply(FINE[low], COARSE[high]));

#pragma unroll
    for (int k = 0; k < RADIX; ++k) shared[k * WIDE + t] = a[place(k)];
    __syncthreads();
    // Now high is k, and low still t.
#pragma unroll
    for (int j = 0; j < RADIX; ++j) a[j] = shared[high * WIDE + j * RADIX + low];
    transform(a);
    turn(a, COARSE[low]);
    __syncthreads();

#pragma unroll
    for (int k = 0; k < RADIX; ++k) shared[(k * RADIX + high) * NARROW + low] = a[place(k)];
    __syncthreads();
    // Now high is k' and low is k.
#pragma unroll
    for (int j = 0; j < RADIX; ++j) a[j] = shared[t * NARROW + j];
    transform(a);
#pragma unroll
    for (int k = 0; k < RADIX; ++k) out[first + k * THREADS + t] = a[place(k)];
}
