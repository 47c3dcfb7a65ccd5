// Atomics of every type and scope, and the C++ memory model on top of them.
// corpus: sample
#include <cuda/atomic>
#include <cstdint>
template <typename T> __global__ void integer(T *o, T v, T w) {
  __shared__ T s[4];
  s[threadIdx.x & 3] = v; __syncthreads();
  atomicAdd(o, v); atomicAdd(s, v); atomicExch(o + 1, v); o[9] = atomicExch(s + 1, w); atomicCAS(o + 2, v, w);
  o[8] = atomicCAS(s + 2, v, w); atomicMin(o + 3, v); atomicMax(o + 4, v); o[10] = atomicMax(s + 3, w);
  atomicAnd(o + 5, v); atomicOr(o + 6, v); atomicXor(o + 7, v);
  atomicAdd_block(o, w); atomicAdd_system(o, w); o[11] = atomicCAS_system(o + 2, w, v); o[12] = atomicMin_block(o + 3, w);
}
template __global__ void integer<int>(int *, int, int);
template __global__ void integer<unsigned>(unsigned *, unsigned, unsigned);
template __global__ void integer<unsigned long long>(unsigned long long *, unsigned long long, unsigned long long);
extern "C" __global__ void others(unsigned *o, float *f, double *d, unsigned short *h, unsigned v) {
  atomicInc(o, v); o[3] = atomicDec(o + 1, v); atomicSub(o + 2, v);
  atomicAdd(f, 1.f); f[2] = atomicExch(f + 1, 2.f); atomicAdd(d, 1.0); d[1] = atomicAdd_system(d + 2, 3.0);
  h[0] = atomicCAS(h + 1, (unsigned short)v, (unsigned short)7);
#if __CUDA_ARCH__ >= 900
  atomicAdd((float2 *)f, make_float2(1, 2)); ((float4 *)f)[4] = atomicAdd((float4 *)f, make_float4(1, 2, 3, 4));
#endif
}
template <typename T, cuda::thread_scope S> __global__ void model(T *p, T *o, T v) {
  cuda::atomic_ref<T, S> a(*p);
  int k = 0;
  o[k++] = a.load(cuda::std::memory_order_relaxed); o[k++] = a.load(cuda::std::memory_order_acquire);
  o[k++] = a.load(cuda::std::memory_order_seq_cst); a.store(v, cuda::std::memory_order_relaxed);
  a.store(v, cuda::std::memory_order_release); a.store(v); o[k++] = a.exchange(v, cuda::std::memory_order_acq_rel);
  T e = o[9]; o[k++] = a.compare_exchange_strong(e, v); o[k++] = a.compare_exchange_weak(e, v, cuda::std::memory_order_relaxed);
  o[k++] = a.fetch_add(v, cuda::std::memory_order_relaxed); o[k++] = a.fetch_add(v); a.fetch_sub(v, cuda::std::memory_order_release);
  cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, S);
}
#define M(T) template __global__ void model<T, cuda::thread_scope_block>(T *, T *, T); template __global__ void model<T, cuda::thread_scope_device>(T *, T *, T); template __global__ void model<T, cuda::thread_scope_system>(T *, T *, T);
M(int) M(unsigned long long) M(float) M(double) M(short) M(unsigned char)
