// Asynchronous warpgroup matrix units of sm_90a.
// corpus: gpus sm_90a
// corpus: sample
#include <cstdint>
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#define WAIT asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
#define KERNEL(NAME, TYPES, TAIL)                                                                            \
  extern "C" __global__ void NAME(float *o, uint64_t a, uint64_t b, int n) {                                 \
    float d[8];                                                                                              \
    for (int i = 0; i < 8; i++) d[i] = o[i];                                                                 \
    FENCE                                                                                                    \
    for (int k = 0; k < n; k++)                                                                              \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k" TYPES " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, p, 1, 1" TAIL "; }" \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) : "l"(a + k), "l"(b + k), "r"(k)); \
    WAIT                                                                                                     \
    for (int i = 0; i < 8; i++) o[i] = d[i];                                                                 \
  }
KERNEL(wgmma_f16, "16.f32.f16.f16", ", 0, 1") KERNEL(wgmma_bf16, "16.f32.bf16.bf16", ", 1, 0")
KERNEL(wgmma_tf32, "8.f32.tf32.tf32", "") KERNEL(wgmma_fp8, "32.f32.e4m3.e5m2", "")
extern "C" __global__ void wgmma_s8(int *o, uint64_t a, uint64_t b) {
  int d[4] = {o[0], o[1], o[2], o[3]};
  FENCE
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8.satfinite {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "l"(a), "l"(b));
  WAIT
  for (int i = 0; i < 4; i++) o[i] = d[i];
}
// The first matrix in registers, read asynchronously.
extern "C" __global__ void wgmma_registers(float *o, const uint32_t *a, uint64_t b) {
  float d[4] = {o[0], o[1], o[2], o[3]};
  uint32_t r[4] = {a[0], a[1], a[2], a[3]};
  FENCE
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, -1, 1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b));
  asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, %9, 0, 1, 1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b), "r"(r[0]));
  WAIT
  for (int i = 0; i < 4; i++) o[i] = d[i];
}
