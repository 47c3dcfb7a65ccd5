// Half precision and bfloat16, scalar and packed: arithmetic, comparisons, conversions, functions, atomics.
// corpus: sample
// corpus: variant exact -fmad=false
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> __global__ void scalar(T *o, const T *a, int n) {
  int i = threadIdx.x, k = 0;
  T x = a[i], y = a[i + n], z = a[i + 2 * n];
#define O(E) o[k++ * n + i] = (E);
  O(x + y) O(x - y) O(x *y) O(x / y) O(-x) O(__hfma(x, y, z)) O(__hfma_sat(x, y, z)) O(__hfma_relu(x, y, z))
  O(__hadd_sat(x, y)) O(__hmul_sat(x, y)) O(__hadd_rn(x, y)) O(__hmul_rn(x, y)) O(__habs(x)) O(__hmax(x, y))
  O(__hmin(x, y)) O(__hmax_nan(x, y)) O(__hmin_nan(x, y)) O(hsin(x)) O(hcos(x)) O(hexp(x)) O(hexp2(x)) O(hexp10(x))
  O(hlog(x)) O(hlog2(x)) O(hlog10(x)) O(hsqrt(x)) O(hrsqrt(x)) O(hrcp(x)) O(hfloor(x)) O(hceil(x)) O(htrunc(x))
  O(hrint(x)) O(htanh(x)) O(htanh_approx(x)) O(x > y ? x : z) O(__hltu(x, y) ? x : z) O(__hisnan(x) ? y : x)
  O(__shfl_xor_sync(~0u, x, 1)) O(__shfl_down_sync(~0u, x, 2)) O(__ldg(a + i))
}
template __global__ void scalar<__half>(__half *, const __half *, int);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template __global__ void scalar<__nv_bfloat16>(__nv_bfloat16 *, const __nv_bfloat16 *, int);
#endif

template <typename T> __global__ void packed(T *o, const T *a, unsigned *m, int n) {
  int i = threadIdx.x, k = 0;
  T x = a[i], y = a[i + n], z = a[i + 2 * n];
  O(__hadd2(x, y)) O(__hsub2(x, y)) O(__hmul2(x, y)) O(__h2div(x, y)) O(__hneg2(x)) O(__hfma2(x, y, z))
  O(__hfma2_sat(x, y, z)) O(__hfma2_relu(x, y, z)) O(__habs2(x)) O(__hmax2(x, y)) O(__hmin2_nan(x, y)) O(h2sin(x))
  O(h2cos(x)) O(h2exp(x)) O(h2exp2(x)) O(h2log2(x)) O(h2sqrt(x)) O(h2rsqrt(x)) O(h2rcp(x)) O(h2floor(x)) O(h2rint(x))
  O(h2tanh(x)) O(h2tanh_approx(x)) O(__heq2(x, y)) O(__hltu2(x, y)) O(__hisnan2(x))
  m[i] = __heq2_mask(x, y) + __hgtu2_mask(x, y) + __hbeq2(x, y) + __hbneu2(x, y);
  atomicAdd(o + i, x);
}
template __global__ void packed<__half2>(__half2 *, const __half2 *, unsigned *, int);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template __global__ void packed<__nv_bfloat162>(__nv_bfloat162 *, const __nv_bfloat162 *, unsigned *, int);
#endif

extern "C" __global__ void half_conversions(__half *h, float *f, int *i, double *d, long long *l) {
  int k = 0; float x = f[0];
  h[k++] = __float2half_rn(x); h[k++] = __float2half_rz(x); h[k++] = __float2half_ru(x); h[k++] = __float2half_rd(x);
  h[k++] = __double2half(d[0]); h[k++] = __int2half_rn(i[0]); h[k++] = __uint2half_rz(i[0]); h[k++] = __ll2half_ru(l[0]);
  h[k++] = __short2half_rd(i[0]); h[k++] = __ushort_as_half(i[1]);
  *(__half2 *)(h + 10) = __floats2half2_rn(x, f[1]); *(__half2 *)(h + 12) = __float22half2_rn(*(float2 *)f);
  f[2] = __half2float(h[1]); *(float2 *)(f + 4) = __half22float2(*(__half2 *)h); f[6] = __low2float(*(__half2 *)h);
  i[2] = __half2int_rn(h[0]) + __half2int_rz(h[1]) + __half2uint_ru(h[2]) + __half2short_rd(h[3]) + __half_as_short(h[4]);
  l[1] = __half2ll_rn(h[0]) + __half2ull_rz(h[1]); i[3] = __half2uchar_rz(h[5]) + __half2char_rz(h[5]);
  atomicAdd(h + 20, h[0]);
}
extern "C" __global__ void bfloat_conversions(__nv_bfloat16 *h, float *f, int *i, double *d, long long *l) {
  int k = 0; float x = f[0];
  h[k++] = __float2bfloat16_rn(x); h[k++] = __float2bfloat16_rz(x); h[k++] = __float2bfloat16_ru(x);
  h[k++] = __double2bfloat16(d[0]); h[k++] = __int2bfloat16_rn(i[0]); h[k++] = __uint2bfloat16_rz(i[0]);
  h[k++] = __ll2bfloat16_ru(l[0]); h[k++] = __short2bfloat16_rd(i[0]); h[k++] = __ushort_as_bfloat16(i[1]);
  *(__nv_bfloat162 *)(h + 10) = __floats2bfloat162_rn(x, f[1]);
  f[2] = __bfloat162float(h[1]); *(float2 *)(f + 4) = __bfloat1622float2(*(__nv_bfloat162 *)h);
  i[2] = __bfloat162int_rn(h[0]) + __bfloat162uint_ru(h[2]) + __bfloat162short_rd(h[3]);
  l[1] = __bfloat162ll_rn(h[0]) + __bfloat162ull_rz(h[1]);
  atomicAdd(h + 20, h[0]);
}
