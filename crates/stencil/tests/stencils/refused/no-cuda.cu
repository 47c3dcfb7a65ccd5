__global__ void f(double *out) { out[0] = ; }

// expect:
// cuda::syntax
//
//   × this is no CUDA C as it is understood
//    ╭─[no-cuda.cu:1:41]
//  1 │ __global__ void f(double *out) { out[0] = ; }
//    ·                                         ┬
//    ·                                         ╰── not understood
//  2 │
//    ╰────
