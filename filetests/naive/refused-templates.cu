// test: accesses
//  kernels of templates have no name of their own

template <class T> __global__ void k(const T *a, T *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x];
}

// expect: accesses
// naive::template
//
//   × a template, or a kernel inside something else, is not rewritten
//    ╭─[refused-templates.cu:4:36]
//  3 │
//  4 │ template <class T> __global__ void k(const T *a, T *c, int n) {
//    ·                                    ┬
//    ·                                    ╰── here
//  5 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
