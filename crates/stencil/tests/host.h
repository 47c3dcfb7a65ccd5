// What programs of `harness` need of CUDA, on the host: one thread after the other.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cstdint>
#include <algorithm>
#define __global__
#define __host__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __restrict__
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static dim3 gridDim, blockDim, blockIdx, threadIdx;
typedef int cudaError_t;
typedef void* cudaStream_t;
typedef void* cudaEvent_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorNotSupported = 801 };
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
static const char* cudaGetErrorString(cudaError_t status) { return status == cudaErrorNotSupported ? "not supported" : "error"; }
static cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
static cudaError_t cudaGetLastError() { return cudaSuccess; }
static cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
template <class T>
static cudaError_t cudaMalloc(T** at, size_t bytes) { *at = static_cast<T*>(std::malloc(bytes)); return *at ? 0 : 2; }
static cudaError_t cudaFree(void* at) { std::free(at); return cudaSuccess; }
static cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, int) { std::memcpy(to, from, bytes); return cudaSuccess; }
static cudaError_t cudaMemset(void* at, int value, size_t bytes) { std::memset(at, value, bytes); return cudaSuccess; }
static cudaError_t cudaEventCreate(cudaEvent_t*) { return cudaSuccess; }
static cudaError_t cudaEventRecord(cudaEvent_t) { return cudaSuccess; }
static cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
static cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { *ms = 1; return cudaSuccess; }
static long long __double_as_longlong(double value) { long long bits; std::memcpy(&bits, &value, 8); return bits; }
static void atomicMax(unsigned long long* at, unsigned long long value) { *at = std::max(*at, value); }
using std::fabs;
using std::fmax;
using std::max;
using std::min;
template <class Body>
static void run_blocks(dim3 grid, dim3 block, Body body)
{
  gridDim = grid;
  blockDim = block;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
        for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
          for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) body();
}
