// OpenCL C through the same back end: other address spaces, other calling conventions, `.ptr` parameters.
// corpus: sample
// corpus: variant plain -O0
// corpus: variant debug -g
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define AXPY(T) kernel void axpy_##T(global T *y, global const T *restrict x, T a, int n) { int i = __nvvm_read_ptx_sreg_tid_x(); if (i < n) y[i] = a * x[i] + y[i]; }
AXPY(float) AXPY(double) AXPY(int) AXPY(long) AXPY(short) AXPY(uchar) AXPY(float2) AXPY(float4) AXPY(int4) AXPY(double2) AXPY(uchar16) AXPY(float3) AXPY(short8)
kernel void local_reduce(global float *o, global const float *a, local float *s, constant float *c) {
  int i = __nvvm_read_ptx_sreg_tid_x();
  s[i] = a[i] * c[i & 7];
  __nvvm_bar_sync(0);
  for (int d = 64; d; d >>= 1) { if (i < d) s[i] += s[i + d]; __nvvm_bar_sync(0); }
  if (i == 0) o[0] = s[0];
}
constant float weights[4] = {1, 2, 3, 4};
kernel __attribute__((reqd_work_group_size(64, 2, 1))) void fixed(global float *o) { local float s[64]; s[0] = o[0]; o[1] = s[0] * weights[(int)o[2] & 3]; }
typedef struct { float a; double b[3]; char c; } Record;
kernel void by_value(global Record *o, Record r) { r.a += 1; o[0] = r; }
kernel void privates(global int *o, int n) { int b[16]; for (int i = 0; i < 16; i++) b[(i * n) & 15] = o[i]; o[0] = b[n & 15]; }
float __attribute__((noinline)) helper(float x, float4 v) { return x * v.y + v.w; }
kernel void calls(global float *o, float4 v) { o[0] = helper(o[1], v); }
kernel void generic_loop(global const float *a, global float *o, uint n) { float s = 0; for (uint i = 0; i < n; i++) { if (a[i] < 0) continue; s += a[i]; if (s > 100.f) break; } *o = s; }
