template <typename T>
__global__ void f(T *out, const T *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
void host(double *out, const double *in, int n) { f<<<n / 32 + 1, 32>>>(out, in, n); }
// expect:
// stencil::template
//
//   × what `f` is instantiated with is not known here
//    ╭─[template-deduced.cu:2:17]
//  1 │ template <typename T>
//  2 │ __global__ void f(T *out, const T *in, int n) {
//    ·                 ┬
//    ·                 ╰── this template
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//    ╭─[template-deduced.cu:6:51]
//  5 │ }
//  6 │ void host(double *out, const double *in, int n) { f<<<n / 32 + 1, 32>>>(out, in, n); }
//    ·                                                   ┬
//    ·                                                   ╰── the compiler finds it out
//    ╰────
//   help: write `f<…>`
