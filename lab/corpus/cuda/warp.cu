// Warp-wide communication: shuffles, votes, matches, reductions, elections.
// corpus: sample
#include <cstdint>
template <typename T> __global__ void shuffles(T *o, int s) {
  int i = threadIdx.x;
  T x = o[i];
  x += __shfl_sync(~0u, x, s); x += __shfl_up_sync(~0u, x, s, 16); x += __shfl_down_sync(0xffff, x, 3, 8);
  x += __shfl_xor_sync(~0u, x, 5);
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d);
  o[i] = x;
}
#define S(T) template __global__ void shuffles<T>(T *, int);
S(int) S(unsigned) S(long long) S(unsigned long long) S(float) S(double)
extern "C" __global__ void votes(unsigned *o, int s) {
  int i = threadIdx.x, x = o[i];
  unsigned active = __activemask();
  o[i] = __all_sync(~0u, x > s) + __any_sync(~0u, x < s) * 2 + __ballot_sync(~0u, x == s);
  o[i + 32] = __match_any_sync(~0u, x); int p; o[i + 64] = __match_all_sync(~0u, x, &p) + p;
  o[i + 96] = __match_any_sync(active, (unsigned long long)x << 32);
  __syncwarp(); __syncwarp(active);
#if __CUDA_ARCH__ >= 800
  o[i + 128] = __reduce_add_sync(~0u, x) + __reduce_min_sync(~0u, x) + __reduce_max_sync(~0u, (unsigned)x);
  o[i + 160] = __reduce_and_sync(~0u, (unsigned)x) ^ __reduce_or_sync(~0u, (unsigned)x) ^ __reduce_xor_sync(~0u, (unsigned)x);
#endif
}
extern "C" __global__ void barriers(int *o, int n) {
  __syncthreads(); o[0] = __syncthreads_count(n > 3) + __syncthreads_and(n) + __syncthreads_or(n);
  __threadfence(); o[1] = 1; __threadfence_block(); o[2] = 2; __threadfence_system();
  asm volatile("bar.sync 1, 64; bar.arrive 2, 128; barrier.sync 3; barrier.arrive.aligned 4, 96; bar.warp.sync 0xff;");
  asm volatile("barrier.sync.aligned %0, %1;" :: "r"(n & 15), "r"(64));
  asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red.or.pred q, 5, p; barrier.red.popc.aligned.u32 %0, 6, 64, !p; }" : "=r"(o[3]) : "r"(n));
  asm volatile("membar.cta; membar.gl; membar.sys; fence.acq_rel.gpu; fence.sc.sys;");
}
