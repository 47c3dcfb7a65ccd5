// Control flow: jump tables, calls, recursion, function pointers, virtual functions, early exits, unrolling.
// corpus: sample
// corpus: variant debug -G
// corpus: variant lines -lineinfo
// corpus: variant rdc -rdc=true
// corpus: variant limit -maxrregcount=24
#include <cstdint>

template <int N> __device__ __noinline__ float cases(int c, float x) {
  switch (c) {
  case 0: return x * 3;
  case 1: return x + 7;
  case 2: return x / 3;
  case 3: return sqrtf(x);
  case 4: return -x;
  case 5: return __expf(x);
  case 6: return x * x * N;
  case 7: return fabsf(x) + N;
  case 8: return 1 / x;
  case 9: return x - N;
  default: return 0;
  }
}
template <int N> __global__ void jump_table(float *o, const int *c) {
  o[threadIdx.x] = cases<N>(c[threadIdx.x], o[threadIdx.x]);
}
template __global__ void jump_table<1>(float *, const int *);
template __global__ void jump_table<2>(float *, const int *);

// A dispatch loop in one kernel: the jump table stays inside the loop.
extern "C" __global__ void interpreter(int *o, const uint8_t *code, int n) {
  int acc = threadIdx.x, x = 0, y = 1;
  for (int pc = 0; pc < n; pc++) {
    switch (code[pc]) {
    case 0: acc += x; break;
    case 1: acc -= y; break;
    case 2: acc *= x | 1; break;
    case 3: x = acc; break;
    case 4: y = acc; break;
    case 5: if (acc & 1) pc++; break;
    case 6: pc = acc & (n - 1); break;
    case 7: acc = __shfl_xor_sync(~0u, acc, 1); break;
    case 8: o[acc & 31] = x; break;
    case 9: return;
    case 10: acc ^= y << 3; break;
    case 11: acc = x > y ? x : y; break;
    }
  }
  o[threadIdx.x] = acc;
}

__device__ int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursion(int *o) { o[0] = ackermann(o[1], o[2]); }

struct Shape {
  __device__ virtual float area(float s) const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape { __device__ float area(float s) const override { return s * s; } };
struct Circle : Shape { __device__ float area(float s) const override { return 3.14159f * s * s; } };
extern "C" __global__ void virtual_calls(float *o, int n) {
  Square square; Circle circle;
  const Shape *shapes[2] = {&square, &circle};
  o[threadIdx.x] = shapes[n & 1]->area(o[threadIdx.x]);
}

typedef float (*Function)(float, float);
__device__ __noinline__ float plus(float a, float b) { return a + b; }
__device__ __noinline__ float times(float a, float b) { return a * b; }
__device__ Function table[2] = {plus, times};
extern "C" __global__ void function_pointers(float *o, int n) { o[threadIdx.x] = table[n](o[threadIdx.x], 2.f); }

struct Big { double v[12]; int tag; char c[5]; };
__device__ __noinline__ Big by_value(Big b, int i) { b.v[i] *= 2; b.tag++; return b; }
extern "C" __global__ void struct_calls(Big *o, int n) { o[threadIdx.x] = by_value(o[threadIdx.x], n); }
extern "C" __global__ void struct_parameter(const __grid_constant__ Big b, double *o) { o[threadIdx.x] = b.v[threadIdx.x] + b.tag; }

extern "C" __global__ void nested_loops(float *o, const float *a, int n, int m) {
  float s = 0;
  for (int i = 0; i < n; i++) {
    if (a[i] < 0) continue;
    for (int j = i; j < m; j += 2) {
      if (a[j] > 100) break;
      s += a[i] * a[j];
      int k = j;
      while (k > 0 && a[k] != s) k >>= 1;
      do { s -= k; } while (--k > 3);
    }
    if (s > 1e6f) return;
  }
  o[threadIdx.x] = s;
}
extern "C" __global__ void irreducible(int *o, int n) {
  int i = 0;
  if (n & 1) goto second;
first:
  i += 3;
  if (i > n) goto out;
second:
  i *= 2;
  if (i < n * 4) goto first;
out:
  o[threadIdx.x] = i;
}
template <int N> __global__ void __launch_bounds__(128, 4) unrolled(float *o, const float *a) {
  float s[N];
#pragma unroll
  for (int i = 0; i < N; i++) s[i] = a[i * 128 + threadIdx.x];
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int i = 0; i < N; i++) s[i] = s[i] * s[(i * 5 + 3) % N] + j;
#pragma unroll
  for (int i = 0; i < N; i++) o[i * 128 + threadIdx.x] = s[i];
}
template __global__ void unrolled<8>(float *, const float *);
template __global__ void unrolled<32>(float *, const float *);
template __global__ void unrolled<96>(float *, const float *);
extern "C" __global__ void __maxnreg__(64) limited(float *o) { o[threadIdx.x] *= 2; }
extern "C" __global__ void assumptions(float *o, int n) {
  __builtin_assume(n > 0);
  if (__builtin_expect(o[0] > 0, 1)) o[1] = n / 4; else __trap();
  if (n == 77) __brkpt();
  if (n == 78) __nanosleep(100);
  if (n == 79) asm volatile("pmevent 3; exit;");
}
