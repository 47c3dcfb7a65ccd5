// What needs the device runtime: printf, assert, allocation, memcpy, alloca, kernels launched from kernels.
// corpus: sample
// corpus: flags -rdc=true
// corpus: variant debug -G
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <new>
extern "C" __global__ void prints(int *o, int n) {
  printf("thread %d of %s: %f %lld %p\n", threadIdx.x, "block", o[0] * 0.5, (long long)n, o);
  assert(o[1] > n && "o[1] must be greater");
}
struct Node { Node *next; int value; __device__ Node(int v) : next(nullptr), value(v) {} };
extern "C" __global__ void allocates(int *o, int n) {
  Node *head = nullptr;
  for (int i = 0; i < n; i++) { Node *node = new Node(i); node->next = head; head = node; }
  int s = 0;
  while (head) { s += head->value; Node *old = head; head = head->next; delete old; }
  char *p = (char *)malloc(n); memset(p, 3, n); memcpy(o + 1, p, 16); free(p);
  int *q = (int *)alloca(n * sizeof(int)); q[n / 2] = s; o[0] = q[o[2]];
}
extern "C" __global__ void copies(int *o, const int *a) {
  struct S { int x[37]; } s = *(const S *)a; s.x[o[3]] = 4; *(S *)o = s; memcpy(o + 100, a + 3, 257); memset(o + 200, 0, 1024);
}
extern "C" __global__ void child(float *p, int n) { if (threadIdx.x < n) p[threadIdx.x] *= 2; }
extern "C" __global__ void parent(float *p, int n) {
  if (threadIdx.x == 0) { child<<<n / 256 + 1, 256>>>(p, n); child<<<1, 32, 128, cudaStreamTailLaunch>>>(p, 7); }
  cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); child<<<1, 1, 0, s>>>(p, 1); cudaStreamDestroy(s);
}
extern __device__ float elsewhere(float x);
extern __device__ int somewhere[];
__device__ __noinline__ float here(float x) { return elsewhere(x) + somewhere[3]; }
extern "C" __global__ void links(float *o) { o[0] = here(o[1]); }
namespace cg = cooperative_groups;
extern "C" __global__ void grid_wide(int *o) { cg::grid_group g = cg::this_grid(); o[g.thread_rank()] = 1; g.sync(); o[1] = o[g.size() - 1]; }
