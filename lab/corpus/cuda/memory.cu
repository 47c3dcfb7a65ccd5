// State spaces, vectors, cache operators, address conversions, and how variables are initialised.
// corpus: sample
// corpus: variant debug -G
#include <cstdint>
#include <cuda_runtime.h>

__constant__ float coefficients[8] = {1.f, 0.5f, -0.25f, 1e-30f, 3e38f, -0.f};
__constant__ struct { int a; double b; const char *name; uint8_t bytes[3]; } record = {7, 2.5, "record", {1, 2, 3}};
__device__ int counter = 42;
__device__ uint64_t wide[4] = {1, ~0ull, 0x8000000000000000ull};
__device__ float *pointer_to = nullptr;
__device__ const char text[] = "a \"quoted\" text\n\ttab \\ \x01\xff";
__device__ void *address_of[2] = {&counter, (char *)&wide[2] + 4};
__managed__ int managed[16];
__device__ volatile int flag;
extern __shared__ __align__(16) char dynamic[];
__device__ int zeros[1 << 16];

extern "C" __global__ void globals(float *o, int i) {
  o[0] = coefficients[i & 7] + record.a + (float)record.b + record.bytes[i % 3] + record.name[i % 6];
  o[1] = counter + wide[i & 3] + text[i % 10] + managed[i & 15] + flag + zeros[i];
  flag = i; managed[3] = i; pointer_to = o + i;
  o[2] = *(int *)address_of[i & 1];
}
template <typename V> __global__ void vectors(V *o, const V *__restrict__ a, const V *b) {
  __shared__ V s[64];
  V local[9];
  int i = threadIdx.x;
  s[i & 63] = a[i];
  __syncthreads();
  for (int k = 0; k < 9; k++) local[k] = s[(i + k) & 63];
  o[i] = local[i % 9];
  o[i + 32] = __ldg(a + i); o[i + 64] = __ldcg(b + i); o[i + 96] = __ldca(b + i); o[i + 128] = __ldcs(b + i);
  o[i + 160] = __ldlu(b + i); o[i + 192] = __ldcv(b + i);
  __stwb(o + i + 224, b[i]); __stcg(o + i + 256, b[i]); __stcs(o + i + 288, b[i]); __stwt(o + i + 320, b[i]);
}
#define V(T) template __global__ void vectors<T>(T *, const T *, const T *);
V(char) V(unsigned char) V(short) V(unsigned short) V(int) V(unsigned) V(long long) V(unsigned long long)
V(float) V(double) V(char2) V(char4) V(uchar2) V(uchar4) V(short2) V(short4) V(ushort2) V(ushort4) V(int2)
V(int4) V(uint2) V(uint4) V(longlong2) V(ulonglong2) V(float2) V(float4) V(double2)

extern "C" __global__ void address_spaces(uint64_t *o, void *p) {
  __shared__ int s[32];
  int l[4] = {1, 2, 3, (int)o[9]};
  o[0] = __isGlobal(p) | __isShared(p) << 1 | __isConstant(p) << 2 | __isLocal(p) << 3 | __isGridConstant(p) << 4;
  o[1] = __cvta_generic_to_shared(s); o[2] = __cvta_generic_to_global(p); o[3] = __cvta_generic_to_local(l);
  o[4] = __cvta_generic_to_constant(coefficients); o[5] = (uint64_t)__cvta_shared_to_generic(o[6]);
  o[7] = *(int *)__cvta_global_to_generic(o[6]) + l[o[8] & 3];
  float *f = (float *)dynamic;
  f[threadIdx.x] = 1; __syncthreads(); o[10] = dynamic[o[11]];
}
extern "C" __global__ void ptx_memory(uint32_t *o, const uint32_t *a, uint64_t *p) {
  uint32_t r, s, t, u; uint64_t q;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u32 %0, [%1];" : "=r"(r) : "l"(a)); o[0] = r;
  asm volatile("ld.global.L1::evict_last.v4.u32 {%0,%1,%2,%3}, [%4+16];" : "=r"(r), "=r"(s), "=r"(t), "=r"(u) : "l"(a)); o[1] = r + s + t + u;
  asm volatile("ld.volatile.global.u16 %0, [%1+-2];" : "=r"(r) : "l"(a)); o[2] = r;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(a)); o[3] = r;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(r) : "l"(a)); o[4] = r;
  asm volatile("st.release.cta.u32 [%0], %1;" :: "l"(o + 5), "r"(r));
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" :: "l"(p), "l"((uint64_t)r));
  asm volatile("st.global.L1::evict_first.u32 [%0], %1;" :: "l"(o + 6), "r"(r));
  asm volatile("ldu.global.u32 %0, [%1];" : "=r"(r) : "l"(a)); o[7] = r;
  asm volatile("prefetch.global.L2 [%0];" :: "l"(a));
  asm volatile("prefetch.global.L1 [%0];" :: "l"(a));
  asm volatile("prefetchu.L1 [%0];" :: "l"(a));
  asm volatile("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "l"(a)); o[8] = r;
  asm volatile("{ .local .align 8 .b8 buf[16]; .reg .u64 a; mov.u64 a, buf; cvta.local.u64 %0, a; }" : "=l"(q)); p[1] = q;
  asm volatile("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %1; mov.b64 %0, {hi, lo}; }" : "=l"(q) : "l"(p[2])); p[2] = q;
  asm volatile("{ .reg .b8 b<4>; .reg .b16 h; mov.b32 {b0, b1, b2, b3}, %1; mov.b16 h, {b2, b1}; cvt.u32.u16 %0, h; }" : "=r"(r) : "r"(s)); o[9] = r;
  asm volatile("{ .reg .u32 %%t<3>; mov.u32 %%t1, %%laneid; add.u32 %0, %%t1, 0U; }" : "=r"(r)); o[10] = r;
}
