// Clusters, elections and register reallocation of sm_90.
// corpus: gpus sm_90 sm_90a sm_100
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 2, 1) clusters(int *o, int n) {
  __shared__ int s[128];
  cg::cluster_group c = cg::this_cluster();
  s[threadIdx.x] = n; c.sync();
  int *other = c.map_shared_rank(s, (c.block_rank() + 1) % c.num_blocks());
  o[threadIdx.x] = other[threadIdx.x] + c.query_shared_rank(other) + c.dim_blocks().x + c.block_index().y;
  atomicAdd(other + 3, n); other[5] = 7; c.barrier_arrive(); c.barrier_wait();
}
extern "C" __global__ void elect(int *o) {
  int l, p;
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.s32 %1, 1, 0, p; }" : "=r"(l), "=r"(p));
  o[0] = l + p;
  asm volatile("{ .reg .pred p; elect.sync _|p, %1; @p st.global.s32 [%0], 1; }" :: "l"(o), "r"(p));
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;");
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;");
}
extern "C" __global__ void __launch_bounds__(384, 1) specialised(float *o) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#endif
  o[threadIdx.x] += 1;
}
extern "C" __global__ void packed_float(float2 *o, float2 a, float2 b) {
#if __CUDA_ARCH__ >= 1000
  unsigned long long r, x = *(unsigned long long *)&a, y = *(unsigned long long *)&b;
  asm volatile("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(r) : "l"(x), "l"(y)); o[0] = *(float2 *)&r;
  asm volatile("add.rz.ftz.f32x2 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(y)); o[1] = *(float2 *)&r;
#endif
  o[2] = make_float2(a.x + b.x, a.y);
}
