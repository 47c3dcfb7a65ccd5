// Cooperative groups: tiles, coalesced groups, reductions, scans, asynchronous copies.
// corpus: min 80
// corpus: sample
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
template <int N, typename T> __global__ void tiles(T *o) {
  auto tile = cg::tiled_partition<N>(cg::this_thread_block());
  T x = o[threadIdx.x];
  x += cg::reduce(tile, x, cg::plus<T>()); x += cg::reduce(tile, x, cg::greater<T>()); x += cg::inclusive_scan(tile, x);
  x += cg::exclusive_scan(tile, x, cg::less<T>()); x += tile.shfl_xor(x, 1); x += tile.ballot(x > 3) + tile.any(x < 4);
  tile.sync(); o[threadIdx.x] = x + tile.meta_group_rank();
}
#define T(N) template __global__ void tiles<N, int>(int *); template __global__ void tiles<N, float>(float *);
T(2) T(4) T(8) T(16) T(32)
extern "C" __global__ void coalesced(int *o, int n) {
  if (o[threadIdx.x] > n) {
    auto g = cg::coalesced_threads();
    int r = cg::reduce(g, o[threadIdx.x], cg::plus<int>());
    if (g.thread_rank() == 0) atomicAdd(o, r);
    auto part = cg::labeled_partition(g, o[threadIdx.x] & 3); o[threadIdx.x + 64] = part.size() + cg::invoke_one_broadcast(part, [&] { return atomicAdd(o + 1, 1); });
  }
}
extern "C" __global__ void async_groups(float *o, const float *a, int n) {
  __shared__ __align__(16) float s[1024];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, a, cuda::aligned_size_t<16>(sizeof s)); cg::wait(block);
  o[threadIdx.x] = s[1023 - threadIdx.x];
}
template <int STAGES> __global__ void pipelined(float *o, const float *a, int n) {
  __shared__ __align__(16) float s[STAGES][256];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0;
  for (int load = 0, use = 0; use < n; use++) {
    for (; load < n && load < use + STAGES; load++) {
      pipe.producer_acquire(); cuda::memcpy_async(block, s[load % STAGES], a + load * 256, cuda::aligned_size_t<16>(1024), pipe); pipe.producer_commit();
    }
    pipe.consumer_wait(); sum += s[use % STAGES][threadIdx.x]; pipe.consumer_release();
  }
  o[threadIdx.x] = sum;
}
template __global__ void pipelined<2>(float *, const float *, int);
template __global__ void pipelined<4>(float *, const float *, int);
extern "C" __global__ void barriers(float *o, const float *a) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ __align__(16) float s[256];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), s, a, cuda::aligned_size_t<16>(1024), bar);
  auto token = bar.arrive(); bar.wait(std::move(token)); o[threadIdx.x] = s[threadIdx.x ^ 1]; bar.arrive_and_wait(); bar.arrive_and_drop();
}
extern "C" __global__ void ptx_async(float *o, const float *a, int n) {
  __shared__ __align__(128) float s[1024];
  __shared__ __align__(8) unsigned long long bar;
  unsigned d = (unsigned)__cvta_generic_to_shared(s + threadIdx.x * 4), b = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(d), "l"(a + threadIdx.x * 4));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(d), "l"(a + threadIdx.x * 4), "r"(n));
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, 3; @p cp.async.ca.shared.global [%0], [%1], 8, 4; }" :: "r"(d), "l"(a), "r"(n));
  asm volatile("cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;");
  unsigned long long st; unsigned ok;
  asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(b));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(b));
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(st) : "r"(b));
  asm volatile("{ .reg .pred p; W: mbarrier.test_wait.shared.b64 p, [%1], %2; @!p bra W; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(b), "l"(st));
  asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 3;" : "=l"(st) : "r"(b));
  asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(st) : "r"(b));
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(ok) : "l"(st)); asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(b));
  o[threadIdx.x] = s[threadIdx.x] + ok;
}
