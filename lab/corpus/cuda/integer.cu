// Integer arithmetic of every width, carries, bit manipulation, dot products and SIMD-in-word intrinsics.
// corpus: sample
#include <cstdint>

template <typename T> __global__ void arithmetic(T *out, const T *a, const T *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T x = a[i], y = b[i];
  out[0 * n + i] = x + y;
  out[1 * n + i] = x - y;
  out[2 * n + i] = x * y;
  out[3 * n + i] = y ? x / y : T(0);
  out[4 * n + i] = y ? x % y : T(0);
  out[5 * n + i] = (x & y) ^ (x | ~y);
  out[6 * n + i] = x << (y & 7);
  out[7 * n + i] = x >> (y & 7);
  out[8 * n + i] = x < y ? x : y;
  out[9 * n + i] = x > y ? x : y;
  out[10 * n + i] = x * y + x;
  out[11 * n + i] = (x == y) + (x != y) * 2 + (x <= y) * 4;
  out[12 * n + i] = T(-x);
  out[13 * n + i] = x / 7;
  out[14 * n + i] = x % 10;
}
#define ARITHMETIC(T) template __global__ void arithmetic<T>(T *, const T *, const T *, int);
ARITHMETIC(int8_t) ARITHMETIC(uint8_t) ARITHMETIC(int16_t) ARITHMETIC(uint16_t)
ARITHMETIC(int32_t) ARITHMETIC(uint32_t) ARITHMETIC(int64_t) ARITHMETIC(uint64_t)
ARITHMETIC(__int128) ARITHMETIC(unsigned __int128) ARITHMETIC(bool)

extern "C" __global__ void bits(uint32_t *o, const uint32_t *a, uint64_t *p, const uint64_t *b) {
  int i = threadIdx.x;
  uint32_t x = a[i], y = a[i + 32], z = a[i + 64];
  uint64_t u = b[i], v = b[i + 32];
  o[0] = __brev(x); o[1] = __clz(x); o[2] = __popc(x); o[3] = __ffs(x);
  o[4] = __byte_perm(x, y, z); o[5] = __funnelshift_l(x, y, z); o[6] = __funnelshift_r(x, y, z);
  o[7] = __funnelshift_lc(x, y, z); o[8] = __funnelshift_rc(x, y, z);
  o[9] = __umulhi(x, y); o[10] = __mulhi((int)x, (int)y); o[11] = __umul24(x, y); o[12] = __mul24(x, y);
  o[13] = __sad(x, y, z); o[14] = __usad(x, y, z); o[15] = __hadd(x, y); o[16] = __rhadd(x, y);
  o[17] = __uhadd(x, y); o[18] = __urhadd(x, y); o[19] = abs((int)x); o[20] = __fns(x, y, z);
  p[0] = __brevll(u); p[1] = __clzll(u); p[2] = __popcll(u); p[3] = __ffsll(u);
  p[4] = __umul64hi(u, v); p[5] = __mul64hi((long long)u, (long long)v); p[6] = llabs((long long)u);
}

extern "C" __global__ void dot_products(int *o, const int *a) {
  int i = threadIdx.x;
  int x = a[i], y = a[i + 32], z = a[i + 64];
  unsigned u = x, v = y, w = z;
  o[0] = __dp4a(x, y, z); o[1] = __dp4a(u, v, w); o[2] = __dp2a_lo(x, y, z); o[3] = __dp2a_hi(x, y, z);
  o[4] = __dp2a_lo(u, v, w); o[5] = __dp2a_hi(u, v, w);
}

#define SIMD2(F) o[k++ * n + i] = F(x, y);
#define SIMD1(F) o[k++ * n + i] = F(x);
extern "C" __global__ void simd_in_word(uint32_t *o, const uint32_t *a, int n) {
  int i = threadIdx.x, k = 0;
  uint32_t x = a[i], y = a[i + n];
  SIMD2(__vadd2) SIMD2(__vadd4) SIMD2(__vaddss2) SIMD2(__vaddss4) SIMD2(__vaddus2) SIMD2(__vaddus4)
  SIMD2(__vsub2) SIMD2(__vsub4) SIMD2(__vsubss2) SIMD2(__vsubss4) SIMD2(__vsubus2) SIMD2(__vsubus4)
  SIMD2(__vavgs2) SIMD2(__vavgs4) SIMD2(__vavgu2) SIMD2(__vavgu4) SIMD2(__vhaddu2) SIMD2(__vhaddu4)
  SIMD2(__vmaxs2) SIMD2(__vmaxs4) SIMD2(__vmaxu2) SIMD2(__vmaxu4) SIMD2(__vmins2) SIMD2(__vmins4)
  SIMD2(__vminu2) SIMD2(__vminu4) SIMD2(__vabsdiffs2) SIMD2(__vabsdiffs4) SIMD2(__vabsdiffu2)
  SIMD2(__vabsdiffu4) SIMD2(__vsads2) SIMD2(__vsads4) SIMD2(__vsadu2) SIMD2(__vsadu4)
  SIMD2(__vcmpeq2) SIMD2(__vcmpeq4) SIMD2(__vcmpges2) SIMD2(__vcmpgeu4) SIMD2(__vcmpgts2)
  SIMD2(__vcmpgtu4) SIMD2(__vcmples2) SIMD2(__vcmpleu4) SIMD2(__vcmplts2) SIMD2(__vcmpltu4)
  SIMD2(__vcmpne2) SIMD2(__vcmpne4) SIMD2(__vseteq2) SIMD2(__vseteq4) SIMD2(__vsetges2)
  SIMD2(__vsetgtu4) SIMD2(__vsetles2) SIMD2(__vsetltu4) SIMD2(__vsetne2)
  SIMD1(__vabs2) SIMD1(__vabs4) SIMD1(__vabsss2) SIMD1(__vabsss4) SIMD1(__vneg2) SIMD1(__vneg4)
  SIMD1(__vnegss2) SIMD1(__vnegss4)
  o[k++ * n + i] = __viaddmax_s16x2(x, y, x) + __viaddmin_s16x2_relu(x, y, x);
  o[k++ * n + i] = __vimax3_s32(x, y, i) + __vimin3_u32(x, y, i) + __vimax_s32_relu(x, y);
}

// What the compiler never writes by itself, in the forms of the ISA document.
extern "C" __global__ void extended_precision(uint32_t *o, const uint32_t *a, uint64_t *p, const uint64_t *b) {
  uint32_t x = a[0], y = a[1], z = a[2], w = a[3], r, s;
  asm volatile("add.cc.u32 %0, %2, %3; addc.u32 %1, %4, %5;" : "=r"(r), "=r"(s) : "r"(x), "r"(y), "r"(z), "r"(w));
  o[0] = r; o[1] = s;
  asm volatile("sub.cc.u32 %0, %2, %3; subc.cc.u32 %1, %4, %5;" : "=r"(r), "=r"(s) : "r"(x), "r"(y), "r"(z), "r"(w));
  o[2] = r; o[3] = s;
  asm volatile("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;" : "=r"(r), "=r"(s) : "r"(x), "r"(y), "r"(z), "r"(w));
  o[4] = r; o[5] = s;
  uint64_t u = b[0], v = b[1], t, q;
  asm volatile("add.cc.u64 %0, %2, %3; addc.cc.u64 %1, %3, 0;" : "=l"(t), "=l"(q) : "l"(u), "l"(v));
  p[0] = t; p[1] = q;
  asm volatile("mad.lo.cc.u64 %0, %2, %3, %2; madc.hi.cc.u64 %1, %2, %3, 0;" : "=l"(t), "=l"(q) : "l"(u), "l"(v));
  p[2] = t; p[3] = q;
  asm volatile("mul.wide.u32 %0, %1, %2;" : "=l"(t) : "r"(x), "r"(y)); p[4] = t;
  asm volatile("mad.wide.s32 %0, %1, %2, %3;" : "=l"(t) : "r"(x), "r"(y), "l"(u)); p[5] = t;
  asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[6] = r;
  asm volatile("bfe.s64 %0, %1, %2, %3;" : "=l"(t) : "l"(u), "r"(y), "r"(z)); p[6] = t;
  asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(z), "r"(w)); o[7] = r;
  asm volatile("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(t) : "l"(u), "l"(v), "r"(z), "r"(w)); p[7] = t;
  asm volatile("bfind.u32 %0, %1;" : "=r"(r) : "r"(x)); o[8] = r;
  asm volatile("bfind.shiftamt.s64 %0, %1;" : "=r"(r) : "l"(u)); o[9] = r;
  asm volatile("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[10] = r;
  asm volatile("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[11] = r;
  asm volatile("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[12] = r;
  asm volatile("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[13] = r;
  asm volatile("sad.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[14] = r;
  asm volatile("mad24.hi.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[15] = r;
  asm volatile("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[16] = r;
  asm volatile("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[17] = r;
  asm volatile("{ .reg .pred p, q; setp.lt.and.u32 p|q, %1, %2, 0; selp.b32 %0, %1, %2, p; @!q add.u32 %0, %0, 1; }" : "=r"(r) : "r"(x), "r"(y)); o[18] = r;
  asm volatile("set.ge.u32.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[19] = r;
  asm volatile("slct.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[20] = r;
  asm volatile("cnot.b32 %0, %1;" : "=r"(r) : "r"(x)); o[21] = r;
  asm volatile("szext.clamp.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[22] = r;
  asm volatile("bmsk.wrap.b32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[23] = r;
  asm volatile("fns.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[24] = r;
}

// Scalar and packed video instructions (packed ones are emulated on current GPUs, but remain PTX).
extern "C" __global__ void video(uint32_t *o, const uint32_t *a) {
  uint32_t x = a[0], y = a[1], z = a[2], r;
  asm volatile("vadd.s32.u32.s32.sat %0, %1.b0, %2.h1;" : "=r"(r) : "r"(x), "r"(y)); o[0] = r;
  asm volatile("vsub.s32.s32.u32.add %0, %1.b3, %2.b2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[1] = r;
  asm volatile("vabsdiff.u32.s32.u32.max %0, %1.h0, %2.h1, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[2] = r;
  asm volatile("vmin.s32.s32.s32 %0.b1, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[3] = r;
  asm volatile("vmax.u32.u32.u32 %0.h0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[4] = r;
  asm volatile("vshl.u32.u32.u32.clamp %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[5] = r;
  asm volatile("vshr.s32.s32.u32.wrap.add %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[6] = r;
  asm volatile("vmad.s32.u32.s32.sat.shr7 %0, %1.b0, %2.b1, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[7] = r;
  asm volatile("vset.u32.s32.ge %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[8] = r;
  asm volatile("vadd2.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[9] = r;
  asm volatile("vavrg4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[10] = r;
  asm volatile("vabsdiff4.u32.s32.s32.add %0.b20, %1.b7610, %2.b3210, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[11] = r;
  asm volatile("vset4.s32.u32.lt %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[12] = r;
  asm volatile("vmax2.s32.s32.s32.sat %0.h10, %1.h32, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[13] = r;
}
