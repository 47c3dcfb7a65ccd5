// test: accesses
//  a template that nobody instantiates is no kernel

template <class T> __global__ void k(const T *a, T *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x];
}

// expect: accesses
// naive::template
//
//   × `k` is instantiated nowhere in this file
//    ╭─[refused-templates.cu:4:36]
//  3 │
//  4 │ template <class T> __global__ void k(const T *a, T *c, int n) {
//    ·                                    ┬
//    ·                                    ╰── this template
//  5 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//   help: add `template __global__ void k<…>(…);`
