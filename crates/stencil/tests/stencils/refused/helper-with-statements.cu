__device__ double f1(double x) { double t = x; t = t * x; return t + x; }
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f1(in[i]);
}

// expect:
// stencil::call
//
//   × the function `f1` is more than a `return`
//    ╭─[helper-with-statements.cu:1:48]
//  1 │ __device__ double f1(double x) { double t = x; t = t * x; return t + x; }
//    ·                                                ─────┬────
//    ·                                                     ╰── this statement
//  2 │ __global__ void f(double *out, const double *in, int n) {
//    ╰────
//   help: before it, only values may get names: `double a = …;`
