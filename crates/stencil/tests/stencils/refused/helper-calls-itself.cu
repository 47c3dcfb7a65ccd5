__device__ double f1(double x) { return f1(x) + 1.0; }
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f1(in[i]);
}

// expect:
// stencil::call
//
//   × the function `f1` calls itself, or is nested too deep
//    ╭─[helper-calls-itself.cu:1:19]
//  1 │ __device__ double f1(double x) { return f1(x) + 1.0; }
//    ·                   ─┬                    ─┬
//    ·                    │                     ╰── called here
//    ·                    ╰── defined here
//  2 │ __global__ void f(double *out, const double *in, int n) {
//    ╰────
