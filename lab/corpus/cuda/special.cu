// Special registers.
// corpus: sample
#define R32(N) asm volatile("mov.u32 %0, %%" N ";" : "=r"(r)); o[k++] = r;
#define R64(N) asm volatile("mov.u64 %0, %%" N ";" : "=l"(q)); p[k++] = q;
extern "C" __global__ void special_registers(unsigned *o, unsigned long long *p) {
  int k = 0; unsigned r; unsigned long long q;
  R32("tid.x") R32("tid.y") R32("tid.z") R32("ntid.x") R32("ntid.y") R32("ntid.z") R32("ctaid.x") R32("ctaid.y") R32("ctaid.z")
  R32("nctaid.x") R32("nctaid.y") R32("nctaid.z") R32("laneid") R32("warpid") R32("nwarpid") R32("smid") R32("nsmid")
  R64("gridid") R32("lanemask_eq") R32("lanemask_lt") R32("lanemask_le") R32("lanemask_gt") R32("lanemask_ge")
  R32("clock") R32("clock_hi") R64("clock64") R64("globaltimer") R32("globaltimer_lo") R32("globaltimer_hi")
  R32("pm0") R32("pm7") R64("pm3_64") R32("total_smem_size") R32("dynamic_smem_size") R32("envreg3") R64("current_graph_exec")
#if __CUDA_ARCH__ >= 800
  R32("reserved_smem_offset_begin") R32("reserved_smem_offset_end") R32("reserved_smem_offset_cap") R32("reserved_smem_offset_0")
#endif
#if __CUDA_ARCH__ >= 900
  R32("clusterid.x") R32("nclusterid.y") R32("cluster_ctaid.z") R32("cluster_nctaid.x") R32("cluster_ctarank")
  R32("cluster_nctarank") R32("aggr_smem_size") asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(r)); o[k] = r;
#endif
}
