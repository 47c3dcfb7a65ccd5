// Matrix units through wmma and through mma.sync, in all shapes and types.
// corpus: sample
#include <cstdint>
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
template <int M, int N, int K, typename A, typename C, typename LA, typename LB>
__global__ void fragments(const A *a, const A *b, C *c) {
  wmma::fragment<wmma::matrix_a, M, N, K, A, LA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, A, LB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, C> fc;
  wmma::fill_fragment(fc, C(0));
  for (int i = 0; i < 4; i++) {
    wmma::load_matrix_sync(fa, a + i * 256, 64); wmma::load_matrix_sync(fb, b + i * 256, 64); wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c, fc, 64, wmma::mem_row_major); wmma::load_matrix_sync(fc, c + 64, 64, wmma::mem_col_major);
  wmma::store_matrix_sync(c + 128, fc, 64, wmma::mem_col_major);
}
#define F(M, N, K, A, C) \
  template __global__ void fragments<M, N, K, A, C, wmma::row_major, wmma::col_major>(const A *, const A *, C *); \
  template __global__ void fragments<M, N, K, A, C, wmma::col_major, wmma::row_major>(const A *, const A *, C *);
F(16, 16, 16, __half, __half) F(16, 16, 16, __half, float) F(32, 8, 16, __half, float) F(8, 32, 16, __half, __half)
F(16, 16, 16, signed char, int) F(32, 8, 16, unsigned char, int) F(8, 32, 16, signed char, int)
#if __CUDA_ARCH__ >= 800
F(16, 16, 16, __nv_bfloat16, float) F(32, 8, 16, __nv_bfloat16, float)
template __global__ void fragments<8, 8, 4, double, double, wmma::row_major, wmma::col_major>(const double *, const double *, double *);
__global__ void tf32(const float *a, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  wmma::load_matrix_sync(fa, a, 8); wmma::load_matrix_sync(fb, a + 128, 8); wmma::fill_fragment(fc, 0.f);
  for (int i = 0; i < fa.num_elements; i++) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
  wmma::mma_sync(fc, fa, fb, fc); wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
#endif
__global__ void small_integers(const int *a, int *c) {
  using namespace wmma::experimental;
  wmma::fragment<wmma::matrix_a, 8, 8, 32, precision::s4, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, precision::s4, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> fc;
  wmma::load_matrix_sync(fa, a, 32); wmma::load_matrix_sync(fb, a + 9, 32); wmma::fill_fragment(fc, 0); wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> ga;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> gb;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> gc;
  wmma::load_matrix_sync(ga, a, 128); wmma::load_matrix_sync(gb, a + 9, 128); wmma::fill_fragment(gc, 0); wmma::bmma_sync(gc, ga, gb, gc);
  wmma::store_matrix_sync(c, gc, 8, wmma::mem_row_major);
}
#define M16(NAME, SHAPE, TYPES, CT, CK)                                                                       \
  extern "C" __global__ void NAME(CT *o, const uint32_t *r) {                                                \
    CT c0 = o[0], c1 = o[1], c2 = o[2], c3 = o[3];                                                           \
    asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+" CK(c0), "+" CK(c1), "+" CK(c2), "+" CK(c3) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5])); \
    o[0] = c0; o[1] = c1; o[2] = c2; o[3] = c3;                                                              \
  }
#if __CUDA_ARCH__ >= 800
M16(mma_f16, "m16n8k16", "f32.f16.f16.f32", float, "f") M16(mma_bf16, "m16n8k16", "f32.bf16.bf16.f32", float, "f")
M16(mma_tf32, "m16n8k8", "f32.tf32.tf32.f32", float, "f") M16(mma_s8, "m16n8k32", "s32.s8.u8.s32", int, "r")
M16(mma_s8_sat, "m16n8k32", "satfinite.s32.u8.s8.s32", int, "r")
#endif
#if __CUDA_ARCH__ >= 890
M16(mma_e4m3, "m16n8k32", "f32.e4m3.e5m2.f32", float, "f")
#endif
extern "C" __global__ void mma_older(uint32_t *o, float *f, double *d, const uint32_t *r) {
  uint32_t x = o[0], y = o[1]; float a = f[0], b = f[1], c = f[2], e = f[3]; int i = o[2], j = o[3];
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(x), "+r"(y) : "r"(r[0]), "r"(r[1]), "r"(r[2]));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "r"(r[0]), "r"(r[1]), "r"(r[2]));
  asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(i), "+r"(j) : "r"(r[0]), "r"(r[1]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(i), "=r"(j) : "r"(r[5]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(r[5]));
#if __CUDA_ARCH__ >= 800
  double u = d[0], v = d[1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(u), "+d"(v) : "d"(d[2]), "d"(d[3])); d[0] = u; d[1] = v;
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x1;" : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]));
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(i), "+r"(j), "+r"(x), "+r"(y) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
#endif
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" :: "r"(r[5]), "r"(x), "r"(y));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%4,%5}, {%2,%3,%2,%3,%2,%3,%2,%3}, {%2,%3,%2,%3}, {%0,%1,%4,%5};" : "+d"(d[4]), "+d"(d[5]) : "d"(d[2]), "d"(d[3]), "d"(d[6]), "d"(d[7]));
#endif
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(x) : "r"(y));
  o[0] = x + y + i + j; f[0] = a + b + c + e;
}
