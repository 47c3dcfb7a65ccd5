// Fixed-base scalar multiplication on NIST's curve P-384, many scalars at once.
//
// A scalar's bytes pick one point each out of a table of multiples, and a thread adds those up:
// sum over w of table[w][byte w]. The running sum has Jacobian coordinates, the table affine ones,
// so an addition takes 11 multiplications modulo the 384-bit prime (mixed addition, Cohen, Miyaji
// and Ono 1998). Numbers are 12 limbs of 32 bits, in Montgomery form; sums and products run along
// the hardware's carry flag, which PTX shows as the `cc` instructions.

namespace {

constexpr int LIMBS = 12;

// p = 2^384 - 2^128 - 2^96 + 2^32 - 1, least significant limb first.
__device__ constexpr unsigned PRIME[LIMBS] = {
    0xFFFFFFFF, 0x00000000, 0x00000000, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF,
    0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF};

// Instructions that set the carry flag (.cc), take it in (a c in the name), or both. They are
// volatile, so that nothing comes between the one that sets it and the one that takes it.
#define BINARY(name, instruction)                                                                \
    __device__ __forceinline__ unsigned name(unsigned a, unsigned b) {                           \
        unsigned d;                                                                              \
        asm volatile(instruction ".u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));                 \
        return d;                                                                                \
    }
#define TERNARY(name, instruction)                                                               \
    __device__ __forceinline__ unsigned name(unsigned a, unsigned b, unsigned c) {               \
        unsigned d;                                                                              \
        asm volatile(instruction ".u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));     \
        return d;                                                                                \
    }
BINARY(add_cc, "add.cc")
BINARY(addc_cc, "addc.cc")
BINARY(addc, "addc")
BINARY(sub_cc, "sub.cc")
BINARY(subc_cc, "subc.cc")
BINARY(subc, "subc")
TERNARY(mad_lo_cc, "mad.lo.cc")
TERNARY(madc_lo_cc, "madc.lo.cc")
TERNARY(mad_hi_cc, "mad.hi.cc")
TERNARY(madc_hi_cc, "madc.hi.cc")

// A residue below p, in Montgomery form: x stands for x / 2^384.
struct Field {
    unsigned limb[LIMBS];
};

__device__ __forceinline__ Field operator-(const Field& a, const Field& b) {
    Field d;
    d.limb[0] = sub_cc(a.limb[0], b.limb[0]);
#pragma unroll
    for (int i = 1; i < LIMBS; ++i) d.limb[i] = subc_cc(a.limb[i], b.limb[i]);
    const unsigned borrow = subc(0, 0);  // all ones if a < b: then p comes back on top
    d.limb[0] = add_cc(d.limb[0], PRIME[0] & borrow);
#pragma unroll
    for (int i = 1; i < LIMBS; ++i) d.limb[i] = addc_cc(d.limb[i], PRIME[i] & borrow);
    return d;
}

__device__ __forceinline__ Field operator*(const Field& a, const Field& b) {
    // t = (t + a b_i + m p) / 2^32 for each limb b_i, where m makes the lowest limb vanish.
    // p is -1 modulo 2^32, so m is that limb itself, and m p is four shifted copies of m.
    unsigned t[LIMBS + 2] = {};
#pragma unroll
    for (int i = 0; i < LIMBS; ++i) {
        t[0] = mad_lo_cc(a.limb[0], b.limb[i], t[0]);
#pragma unroll
        for (int j = 1; j < LIMBS; ++j) t[j] = madc_lo_cc(a.limb[j], b.limb[i], t[j]);
        t[LIMBS] = addc_cc(t[LIMBS], 0);
        t[LIMBS + 1] = addc(0, 0);
        t[1] = mad_hi_cc(a.limb[0], b.limb[i], t[1]);
#pragma unroll
        for (int j = 1; j < LIMBS; ++j) t[j + 1] = madc_hi_cc(a.limb[j], b.limb[i], t[j + 1]);
        t[LIMBS + 1] = addc(t[LIMBS + 1], 0);

        const unsigned m = t[0];
        t[1] = add_cc(t[1], m);
#pragma unroll
        for (int j = 2; j < LIMBS; ++j) t[j] = addc_cc(t[j], 0);
        t[LIMBS] = addc_cc(t[LIMBS], m);
        t[LIMBS + 1] = addc(t[LIMBS + 1], 0);
        t[3] = sub_cc(t[3], m);
        t[4] = subc_cc(t[4], m);
#pragma unroll
        for (int j = 5; j < LIMBS + 1; ++j) t[j] = subc_cc(t[j], 0);
        t[LIMBS + 1] = subc(t[LIMBS + 1], 0);
#pragma unroll
        for (int j = 0; j < LIMBS + 1; ++j) t[j] = t[j + 1];
    }
    // Below 2 p now: subtract p unless that borrows.
    Field d;
    d.limb[0] = sub_cc(t[0], PRIME[0]);
#pragma unroll
    for (int i = 1; i < LIMBS; ++i) d.limb[i] = subc_cc(t[i], PRIME[i]);
    const unsigned borrow = subc(t[LIMBS], 0);
#pragma unroll
    for (int i = 0; i < LIMBS; ++i) d.limb[i] = borrow ? t[i] : d.limb[i];
    return d;
}

// The point (x / z^2, y / z^3).
struct Point {
    Field x, y, z;
};

// Adds an affine point. The two are taken to have different x, as the partial sums of a
// fixed-base multiplication and the next multiple do.
__device__ __forceinline__ void add(Point& a, const Field& x, const Field& y) {
    Field zz = a.z * a.z;
    Field h = x * zz - a.x;
    Field r = y * (zz * a.z) - a.y;
    a.z = a.z * h;
    Field hh = h * h;
    Field v = a.x * hh;
    Field hhh = hh * h;
    a.x = r * r - hhh - v - v;
    a.y = r * (v - a.x) - a.y * hhh;
}

}  // namespace

// scalar: [windows / 4][n], four bytes each; table: [windows][255][24], limbs of x and y
// sum: [36][n], limbs of x, y and z; all zero if all bytes are
extern "C" __global__ void p384_table(int n, int windows, const unsigned* __restrict__ scalar,
                                      const uint4* __restrict__ table,
                                      unsigned* __restrict__ sum) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    Point acc = {};
    bool empty = true;
#pragma unroll 1
    for (int window = 0; window < windows; ++window) {
        const int digit = scalar[(window / 4) * n + id] >> 8 * (window % 4) & 0xFF;
        if (digit == 0) continue;
        Field coordinate[2];
        const uint4* const entry = table + (window * 255 + digit - 1) * 6;
#pragma unroll
        for (int k = 0; k < 6; ++k) {
            uint4 four = entry[k];
            unsigned* limb = coordinate[k / 3].limb + 4 * (k % 3);
            limb[0] = four.x, limb[1] = four.y, limb[2] = four.z, limb[3] = four.w;
        }
        if (empty) {
            // One in Montgomery form: 2^384 - p.
            acc = {coordinate[0], coordinate[1], {{1, 0xFFFFFFFF, 0xFFFFFFFF, 0, 1}}};
            empty = false;
        } else {
            add(acc, coordinate[0], coordinate[1]);
        }
    }
#pragma unroll
    for (int k = 0; k < LIMBS; ++k) {
        sum[k * n + id] = acc.x.limb[k];
        sum[(LIMBS + k) * n + id] = acc.y.limb[k];
        sum[(2 * LIMBS + k) * n + id] = acc.z.limb[k];
    }
}
