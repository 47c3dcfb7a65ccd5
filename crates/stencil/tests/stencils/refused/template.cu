template <typename T>
__global__ void f(T *out, const T *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

// expect:
// stencil::template
//
//   × `f` is instantiated nowhere in this file
//    ╭─[template.cu:2:17]
//  1 │ template <typename T>
//  2 │ __global__ void f(T *out, const T *in, int n) {
//    ·                 ┬
//    ·                 ╰── this template
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//   help: add `template __global__ void f<…>(…);`
