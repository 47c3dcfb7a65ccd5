// The whole mathematical library in single and double precision, accurate and fast, with every rounding.
// corpus: sample
// corpus: variant fast -use_fast_math
// corpus: variant exact -fmad=false -prec-div=true
#include <cstdint>
#include <cuda_runtime.h>

#define K1(NAME, T, EXPR)                                                                                    \
  extern "C" __global__ void NAME(T *o, const T *a) {                                                        \
    T x = a[threadIdx.x];                                                                                    \
    o[threadIdx.x] = EXPR;                                                                                   \
  }
#define K2(NAME, T, EXPR)                                                                                    \
  extern "C" __global__ void NAME(T *o, const T *a, const T *b) {                                            \
    T x = a[threadIdx.x], y = b[threadIdx.x];                                                                \
    o[threadIdx.x] = EXPR;                                                                                   \
  }
#define BOTH1(F) K1(F##_float, float, F##f(x)) K1(F##_double, double, F(x))
#define BOTH2(F) K2(F##_float, float, F##f(x, y)) K2(F##_double, double, F(x, y))
BOTH1(sin) BOTH1(cos) BOTH1(tan) BOTH1(asin) BOTH1(acos) BOTH1(atan) BOTH1(sinh) BOTH1(cosh) BOTH1(tanh)
BOTH1(asinh) BOTH1(acosh) BOTH1(atanh) BOTH1(exp) BOTH1(exp2) BOTH1(exp10) BOTH1(expm1) BOTH1(log) BOTH1(log2)
BOTH1(log10) BOTH1(log1p) BOTH1(sqrt) BOTH1(rsqrt) BOTH1(cbrt) BOTH1(rcbrt) BOTH1(erf) BOTH1(erfc) BOTH1(erfinv)
BOTH1(erfcinv) BOTH1(erfcx) BOTH1(normcdf) BOTH1(normcdfinv) BOTH1(tgamma) BOTH1(lgamma) BOTH1(j0) BOTH1(j1)
BOTH1(y0) BOTH1(y1) BOTH1(cyl_bessel_i0) BOTH1(cyl_bessel_i1) BOTH1(sinpi) BOTH1(cospi) BOTH1(floor) BOTH1(ceil)
BOTH1(trunc) BOTH1(round) BOTH1(rint) BOTH1(nearbyint) BOTH1(fabs) BOTH1(logb)
BOTH2(pow) BOTH2(fmod) BOTH2(remainder) BOTH2(atan2) BOTH2(hypot) BOTH2(rhypot) BOTH2(fdim) BOTH2(fmax) BOTH2(fmin)
BOTH2(copysign) BOTH2(nextafter)

#define ROUNDINGS(S, T)                                                                                      \
  extern "C" __global__ void roundings##S(T *o, const T *a) {                                                \
    T x = a[0], y = a[1], z = a[2];                                                                          \
    int k = 0;                                                                                               \
    R(S, rn, rn) R(S, rz, rz) R(S, ru, ru) R(S, rd, rd)                                                      \
  }
#define R(S, M, N) R_##S(M)
#define R_f(M)                                                                                               \
  o[k++] = __fadd_##M(x, y); o[k++] = __fsub_##M(x, y); o[k++] = __fmul_##M(x, y);                           \
  o[k++] = __fmaf_##M(x, y, z); o[k++] = __fdiv_##M(x, y); o[k++] = __fsqrt_##M(x); o[k++] = __frcp_##M(x);
#define R_d(M)                                                                                               \
  o[k++] = __dadd_##M(x, y); o[k++] = __dsub_##M(x, y); o[k++] = __dmul_##M(x, y);                           \
  o[k++] = __fma_##M(x, y, z); o[k++] = __ddiv_##M(x, y); o[k++] = __dsqrt_##M(x); o[k++] = __drcp_##M(x);
ROUNDINGS(f, float)
ROUNDINGS(d, double)

extern "C" __global__ void fast_intrinsics(float *o, const float *a) {
  float x = a[0], y = a[1];
  o[0] = __sinf(x); o[1] = __cosf(x); o[2] = __tanf(x); o[3] = __expf(x); o[4] = __exp10f(x); o[5] = __logf(x);
  o[6] = __log2f(x); o[7] = __log10f(x); o[8] = __powf(x, y); o[9] = __fdividef(x, y); o[10] = __saturatef(x);
  o[11] = __frsqrt_rn(x); o[12] = norm3df(x, y, x); o[13] = rnorm4df(x, y, x, y); o[14] = ldexpf(x, 3);
  int e; o[15] = frexpf(x, &e); o[16] = e; o[17] = ilogbf(x); float s, c; sincosf(x, &s, &c); o[18] = s; o[19] = c;
  o[20] = modff(x, &s); o[21] = s; int q; o[22] = remquof(x, y, &q); o[23] = q; o[24] = jnf(3, x); o[25] = ynf(3, x);
  o[26] = isnan(x) + 2 * isinf(x) + 4 * isfinite(x) + 8 * signbit(x);
}

extern "C" __global__ void float_conversions(int *o, long long *p, float *f, double *d) {
  float x = f[0]; double y = d[0]; int i = o[0]; long long l = p[0];
  o[1] = __float2int_rn(x) + __float2int_rz(x) + __float2int_ru(x) + __float2int_rd(x);
  o[2] = __float2uint_rn(x) + __float2uint_rz(x) + __double2int_rn(y) + __double2uint_ru(y);
  p[1] = __float2ll_rn(x) + __float2ull_rz(x) + __double2ll_rd(y) + __double2ull_ru(y);
  f[1] = __int2float_rn(i) + __int2float_rz(i) + __uint2float_ru(i) + __ll2float_rd(l) + __ull2float_rn(l);
  f[2] = __double2float_rn(y) + __double2float_rz(y) + __double2float_ru(y) + __double2float_rd(y);
  d[1] = __int2double_rn(i) + __uint2double_rn(i) + __ll2double_rz(l) + __ull2double_ru(l) + (double)x;
  o[3] = __float_as_int(x) + __double2hiint(y) + __double2loint(y);
  d[2] = __hiloint2double(i, o[4]); p[2] = __double_as_longlong(y); f[3] = __int_as_float(i);
  o[5] = (short)x; o[6] = (unsigned char)x; o[7] = (signed char)y; o[8] = lrintf(x) + llroundf(x) + lround(y);
}

extern "C" __global__ void ptx_float(float *o, const float *a, double *p, const double *b, int *q) {
  float x = a[0], y = a[1], z = a[2], r; double u = b[0], v = b[1], t; int n;
  asm volatile("add.rn.ftz.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[0] = r;
  asm volatile("fma.rz.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z)); o[1] = r;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); o[2] = r;
  asm volatile("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); o[3] = r;
  asm volatile("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); o[4] = r;
  asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); o[5] = r;
  asm volatile("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(t) : "d"(u)); p[0] = t;
  asm volatile("rcp.approx.ftz.f64 %0, %1;" : "=d"(t) : "d"(u)); p[1] = t;
  asm volatile("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[6] = r;
  asm volatile("div.approx.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[7] = r;
  asm volatile("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); o[8] = r;
  asm volatile("copysign.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[9] = r;
  asm volatile("copysign.f64 %0, %1, %2;" : "=d"(t) : "d"(u), "d"(v)); p[2] = t;
  asm volatile("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(n) : "f"(x)); q[0] = n;
  asm volatile("{ .reg .pred p; testp.notanumber.f64 p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(n) : "d"(u)); q[1] = n;
  asm volatile("{ .reg .pred p; setp.leu.ftz.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(n) : "f"(x), "f"(y)); q[2] = n;
  asm volatile("set.num.f32.f64 %0, %1, %2;" : "=f"(r) : "d"(u), "d"(v)); o[10] = r;
  asm volatile("slct.ftz.f32.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z)); o[11] = r;
  asm volatile("cvt.rmi.ftz.f32.f32 %0, %1;" : "=f"(r) : "f"(x)); o[12] = r;
  asm volatile("cvt.rpi.sat.u8.f32 %0, %1;" : "=r"(n) : "f"(x)); q[3] = n;
  asm volatile("cvt.rn.sat.f32.s64 %0, %1;" : "=f"(r) : "l"((long long)q[4])); o[13] = r;
}
