// Ordinary CUDA C++ through clang's front end and LLVM's NVPTX back end.
// corpus: sample
// corpus: variant plain -O0
// corpus: variant debug -g
#include "cuda.h"
template <typename T> __global__ void axpy(T *y, const T *__restrict__ x, T a, int n) {
  int i = global_thread();
  if (i < n) y[i] = a * x[i] + y[i];
}
#define A(T) template __global__ void axpy<T>(T *, const T *, T, int);
A(float) A(double) A(int) A(uint64_t) A(short) A(uint8_t) A(_Float16) A(__int128)
template <typename T, int N> __global__ void __launch_bounds__(N) reduce(T *o, const T *a, int n) {
  __shared__ T s[N];
  T sum = 0;
  for (int i = global_thread(); i < n; i += N * 64) sum += a[i];
  s[thread()] = sum;
  __nvvm_bar_sync(0);
  for (int d = N / 2; d; d /= 2) { if (thread() < d) s[thread()] += s[thread() + d]; __nvvm_bar_sync(0); }
  if (thread() == 0) o[block()] = s[0];
}
#define R(T) template __global__ void reduce<T, 128>(T *, const T *, int); template __global__ void reduce<T, 512>(T *, const T *, int);
R(float) R(double) R(int) R(uint64_t)
template <typename T> __global__ void transpose(T *o, const T *a, int n) {
  __shared__ T tile[32][33];
  int x = thread() & 31, y = thread() >> 5;
  for (int j = 0; j < 32; j += 8) tile[y + j][x] = a[(block() * 32 + y + j) * n + x];
  __nvvm_bar_sync(0);
  for (int j = 0; j < 32; j += 8) o[(x * n) + y + j] = tile[x][y + j];
}
template __global__ void transpose<float>(float *, const float *, int);
template __global__ void transpose<double>(double *, const double *, int);
template __global__ void transpose<uint8_t>(uint8_t *, const uint8_t *, int);
template <int N> __global__ void matmul(float *c, const float *a, const float *b, int n) {
  float acc[N][N] = {};
  for (int k = 0; k < n; k++) {
    float x[N], y[N];
    for (int i = 0; i < N; i++) { x[i] = a[(thread() * N + i) * n + k]; y[i] = b[k * n + block() * N + i]; }
#pragma clang loop unroll(full)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) acc[i][j] = __builtin_fmaf(x[i], y[j], acc[i][j]);
  }
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) c[(thread() * N + i) * n + block() * N + j] = acc[i][j];
}
template __global__ void matmul<2>(float *, const float *, const float *, int);
template __global__ void matmul<4>(float *, const float *, const float *, int);
template __global__ void matmul<8>(float *, const float *, const float *, int);
extern "C" __global__ void __launch_bounds__(256, 2) stencil(double *o, const double *a, int n) {
  int i = global_thread() + n * n;
  double s = 0;
#pragma clang loop unroll(full)
  for (int z = -1; z <= 1; z++) for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) s += a[i + (z * n + y) * n + x] * (1.0 / (1 + x * x + y * y + z * z));
  o[i] = s;
}
struct Particle { float x, y, z, m; double v[3]; int id; };
extern "C" __global__ void nbody(Particle *p, int n, Particle by_value) {
  Particle me = p[global_thread()];
  for (int j = 0; j < n; j++) {
    float dx = p[j].x - me.x, dy = p[j].y - me.y, dz = p[j].z - me.z, r = dx * dx + dy * dy + dz * dz + by_value.m;
    float f = p[j].m * __nvvm_rsqrt_approx_f(r); me.v[0] += f * dx; me.v[1] += f * dy; me.v[2] += f * dz;
  }
  p[global_thread()] = me;
}
__constant__ float table[16] = {1, 2, 3};
__device__ int counter = 5;
__device__ const char message[] = "message";
__device__ __noinline__ int helper(int a, int b) { return a * table[b & 15] + message[a & 7]; }
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
typedef int (*Function)(int, int);
__device__ Function choose[2] = {helper, helper};
extern "C" __global__ void calls(int *o, int n) { o[0] = helper(n, 3) + fibonacci(n) + choose[n & 1](n, 7) + counter; }
extern "C" __global__ void switches(int *o, int n) {
  switch (n) { case 0: o[0] = 7; break; case 1: o[1] = 3; case 2: o[2] = 4; break; case 3: o[3] += o[2]; break; case 4: o[9] = 1; break; case 5: return; case 6: o[4] ^= n; break; case 7: o[5] = helper(n, n); break; default: __builtin_trap(); }
}
extern "C" __global__ void locals(int *o, int n) { int b[32]; for (int i = 0; i < 32; i++) b[(i * n) & 31] = o[i]; o[0] = b[n & 31]; }
extern "C" __global__ void vectors(float *o, const float *a) {
  typedef float F4 __attribute__((ext_vector_type(4))); typedef int I2 __attribute__((ext_vector_type(2))); typedef _Float16 H8 __attribute__((ext_vector_type(8)));
  F4 v = ((const F4 *)a)[thread()]; ((F4 *)o)[thread()] = v * v.wzyx; ((I2 *)o)[thread() + 999] = ((const I2 *)a)[thread()] << 3; ((H8 *)o)[thread() + 77] = ((const H8 *)a)[thread()] * (_Float16)2;
}
extern "C" __global__ void builtins(uint32_t *o, uint64_t *p, float *f, double *d, int n) {
  uint32_t x = o[0]; uint64_t u = p[0]; float a = f[0]; double b = d[0];
  o[1] = __builtin_popcount(x) + __builtin_clz(x) + __builtin_ctz(x) + __builtin_bswap32(x) + __builtin_rotateleft32(x, n) + __builtin_bitreverse32(x);
  p[1] = __builtin_popcountll(u) + __builtin_bswap64(u) + u / n + u % n; p[2] = (unsigned __int128)u * p[3] >> 64;
  f[1] = __builtin_sqrtf(a) + __builtin_fabsf(a) + __builtin_floorf(a) + __builtin_fminf(a, f[2]) + __builtin_copysignf(a, f[3]) + __nvvm_ex2_approx_f(a) + __nvvm_sin_approx_ftz_f(a) + a / f[4];
  d[1] = __builtin_sqrt(b) + __builtin_ceil(b) + __builtin_fma(b, b, d[2]) + b / d[3] + (double)x + (float)u + (long long)b + (short)a;
  __nvvm_atom_add_gen_f(f, 1.f); __atomic_fetch_add(o + 2, 7, __ATOMIC_SEQ_CST); __atomic_store_n(o + 3, 1, __ATOMIC_RELAXED); o[4] = __atomic_load_n(o + 5, __ATOMIC_RELAXED);
  o[6] = __nvvm_shfl_sync_bfly_i32(~0u, x, 3, 31) + __nvvm_vote_ballot_sync(~0u, n > 3) + __nvvm_shfl_sync_down_i32(~0u, x, 3, 31); __nvvm_membar_gl();
  asm volatile("add.u32 %0, %1, %2;" : "=r"(o[7]) : "r"(x), "n"(5)); for (volatile int i = 0; i < n; i++) ;
}
