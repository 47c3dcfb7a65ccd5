__global__ void f(int *p) {}
__global__ void g(int *p) {}

// expect:
// stencil::kernel
//
//   × `several-kernels.cu` has several kernels
//   help: it has f, g; mark the stencil with `#pragma warpwright stencil`
