double c0 = 0.5;
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = c0 * in[i];
}
// expect:
// stencil::name
//
//   × `c0` is a variable of the file, not a constant
//    ╭─[global-that-may-change.cu:1:8]
//  1 │ double c0 = 0.5;
//    ·        ─┬
//    ·         ╰── defined here
//  2 │ __global__ void f(double *out, const double *in, int n) {
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i < n) out[i] = c0 * in[i];
//    ·                         ─┬
//    ·                          ╰── used here
//  5 │ }
//    ╰────
//   help: pass it as an argument, or make it `constexpr`
