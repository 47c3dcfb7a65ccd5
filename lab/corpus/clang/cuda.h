// What clang's own CUDA headers would bring, as far as these sources need it: no CUDA installation is read.
#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __host__ __attribute__((host))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __noinline__ __attribute__((noinline))
typedef unsigned long size_t;
typedef unsigned char uint8_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
__device__ inline int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ inline int block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
__device__ inline int width() { return __nvvm_read_ptx_sreg_ntid_x(); }
__device__ inline int global_thread() { return block() * width() + thread(); }
