__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) out[i] = in[i] - in[i - 1];
}
__global__ void g(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) out[i] = in[i] + in[i - 1];
}
// expect:
// stencil::kernel
//
//   × `several-stencils.cu` has several kernels that are stencils
//    ╭─[several-stencils.cu:1:17]
//  1 │ __global__ void f(double *out, const double *in, int n) {
//    ·                 ┬
//    ·                 ╰── a stencil
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//    ╭─[several-stencils.cu:5:17]
//  4 │ }
//  5 │ __global__ void g(double *out, const double *in, int n) {
//    ·                 ┬
//    ·                 ╰── a stencil
//  6 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//   help: name one with `--kernel`, to transform it or to see what is in its way
