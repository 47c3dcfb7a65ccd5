template <int R>
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= R && i < n) out[i] = in[i - R];
}
void host(double *out, const double *in, int n) {
    f<2><<<n / 32 + 1, 32>>>(out, in, n);
    f<3><<<n / 32 + 1, 32>>>(in, out, n);
}
// expect:
// stencil::template
//
//   × `f` is instantiated in several ways
//    ╭─[template-in-two-ways.cu:2:17]
//  1 │ template <int R>
//  2 │ __global__ void f(double *out, const double *in, int n) {
//    ·                 ┬
//    ·                 ╰── this template
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//    ╭─[template-in-two-ways.cu:7:5]
//  6 │ void host(double *out, const double *in, int n) {
//  7 │     f<2><<<n / 32 + 1, 32>>>(out, in, n);
//    ·     ┬
//    ·     ╰── in this way
//  8 │     f<3><<<n / 32 + 1, 32>>>(in, out, n);
//    ·     ┬
//    ·     ╰── and in this
//  9 │ }
//    ╰────
