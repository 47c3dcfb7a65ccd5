// Eight-, six- and four-bit floating-point conversions.
// corpus: sample
// corpus: gpus sm_75 sm_80 sm_89 sm_90 sm_100 sm_100a
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

template <typename F> __global__ void narrow(F *o, const float *a, const __half *h, const __nv_bfloat16 *b, const double *d, float *f) {
  o[0] = F(a[0]); o[1] = F(h[0]); o[2] = F(b[0]); o[3] = F(d[0]);
  f[0] = float(o[4]); f[1] = float(__half(o[5])); f[2] = float(__nv_bfloat16(o[6]));
}
template __global__ void narrow<__nv_fp8_e4m3>(__nv_fp8_e4m3 *, const float *, const __half *, const __nv_bfloat16 *, const double *, float *);
template __global__ void narrow<__nv_fp8_e5m2>(__nv_fp8_e5m2 *, const float *, const __half *, const __nv_bfloat16 *, const double *, float *);
template __global__ void narrow<__nv_fp6_e2m3>(__nv_fp6_e2m3 *, const float *, const __half *, const __nv_bfloat16 *, const double *, float *);
template __global__ void narrow<__nv_fp6_e3m2>(__nv_fp6_e3m2 *, const float *, const __half *, const __nv_bfloat16 *, const double *, float *);
template __global__ void narrow<__nv_fp4_e2m1>(__nv_fp4_e2m1 *, const float *, const __half *, const __nv_bfloat16 *, const double *, float *);

template <typename F> __global__ void narrow2(F *o, const float2 *a, const __half2 *h, const __nv_bfloat162 *b, float2 *f, __half2 *g) {
  o[0] = F(a[0]); o[1] = F(h[0]); o[2] = F(b[0]); f[0] = float2(o[3]); g[0] = __half2(o[4]);
}
template __global__ void narrow2<__nv_fp8x2_e4m3>(__nv_fp8x2_e4m3 *, const float2 *, const __half2 *, const __nv_bfloat162 *, float2 *, __half2 *);
template __global__ void narrow2<__nv_fp8x2_e5m2>(__nv_fp8x2_e5m2 *, const float2 *, const __half2 *, const __nv_bfloat162 *, float2 *, __half2 *);
template __global__ void narrow2<__nv_fp6x2_e2m3>(__nv_fp6x2_e2m3 *, const float2 *, const __half2 *, const __nv_bfloat162 *, float2 *, __half2 *);
template __global__ void narrow2<__nv_fp4x2_e2m1>(__nv_fp4x2_e2m1 *, const float2 *, const __half2 *, const __nv_bfloat162 *, float2 *, __half2 *);
extern "C" __global__ void scale_factors(__nv_fp8_e8m0 *o, const float *a, float *f) {
  o[0] = __nv_fp8_e8m0(a[0]); f[0] = float(o[1]);
}
