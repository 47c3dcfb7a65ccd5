// grid of too few blocks: 8 blocks, 128 threads, long fma loop
#include <cuda_runtime.h>
__global__ void norms(const float *a, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = 0.f;
  for (int c = 0; c < cols; c++) { float v = a[c * rows + r]; s = fmaf(v, v, s); }
  out[r] = sqrtf(s);
}
int main() {
  int rows = 1024, cols = 8192;
  float *a, *o;
  cudaMalloc(&a, sizeof(float) * rows * cols);
  cudaMalloc(&o, sizeof(float) * rows);
  norms<<<8, 128>>>(a, o, rows, cols);
  cudaDeviceSynchronize();
}
