// Matrix and asynchronous-copy builtins of clang.
// corpus: min 80
#include "cuda.h"
extern "C" __global__ void tensor(float *o, const int *a) {
  int fa[8], fb[8]; float fc[8], fd[8];
  __hmma_m16n16k16_ld_a(fa, a, 16, 0); __hmma_m16n16k16_ld_b(fb, a + 64, 16, 1); __hmma_m16n16k16_ld_c_f32(fc, o, 16, 0);
  __hmma_m16n16k16_mma_f32f32(fd, fa, fb, fc, 1, 0); __hmma_m16n16k16_st_c_f32(o, fd, 16, 0);
}
extern "C" __global__ void integer_tensor(int *o, const int *a) {
  int fa[2], fb[2], fc[8], fd[8];
  __imma_m16n16k16_ld_a_s8(fa, a, 16, 0); __imma_m16n16k16_ld_b_s8(fb, a + 64, 16, 1); __imma_m16n16k16_ld_c(fc, o, 16, 0);
  __imma_m16n16k16_mma_s8(fd, fa, fb, fc, 1, 0); __imma_m16n16k16_st_c_i32(o, fd, 16, 0);
}
extern "C" __global__ void double_tensor(double *o, const double *a) {
  double fa[1], fb[1], fc[2], fd[2];
  __dmma_m8n8k4_ld_a(fa, a, 4, 0); __dmma_m8n8k4_ld_b(fb, a + 64, 4, 1); __dmma_m8n8k4_ld_c(fc, o, 8, 0); __dmma_m8n8k4_mma_f64(fd, fa, fb, fc, 1, 0); __dmma_m8n8k4_st_c_f64(o, fd, 8, 0);
}
extern "C" __global__ void reductions(int *o) {
  o[0] = __nvvm_redux_sync_add(o[1], ~0u) + __nvvm_redux_sync_umax(o[2], ~0u); o[3] = __nvvm_match_any_sync_i32(~0u, o[4]); int p = 0; o[5] = __nvvm_match_all_sync_i32p(~0u, o[6], &p) + p;
}
