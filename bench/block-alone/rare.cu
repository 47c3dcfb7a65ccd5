#include <cuda_runtime.h>
// branch divergence: one lane of 32 does long work
__global__ void rare(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = a[i];
  if ((i & 31) == 0) for (int k = 0; k < 2000; k++) v = sinf(v) + 1.f;
  o[i] = v;
}
int main() { int n = 1 << 20; float *a, *o; cudaMalloc(&a, 4 * n); cudaMalloc(&o, 4 * n); rare<<<n / 256, 256>>>(a, o, n); cudaDeviceSynchronize(); }
