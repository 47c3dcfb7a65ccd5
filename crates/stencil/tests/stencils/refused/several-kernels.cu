__global__ void f(int *p) {}
__global__ void g(int *p) {}

// expect:
// stencil::kernel
//
//   × `several-kernels.cu` has several kernels, none of which is a stencil
//    ╭─[several-kernels.cu:1:17]
//  1 │ __global__ void f(int *p) {}
//    ·                 ┬
//    ·                 ╰── `f` stores nothing
//  2 │ __global__ void g(int *p) {}
//    ·                 ┬
//    ·                 ╰── `g` stores nothing
//  3 │
//    ╰────
//   help: name one with `--kernel`, to transform it or to see what is in its way
