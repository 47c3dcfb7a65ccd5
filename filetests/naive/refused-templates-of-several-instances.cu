// test: accesses
//  which of them is the kernel?

template <class T> __global__ void k(const T *a, T *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x];
}
template __global__ void k<float>(const float *, float *, int);
template __global__ void k<double>(const double *, double *, int);

// expect: accesses
// naive::template
//
//   × `k` is instantiated in several ways
//    ╭─[refused-templates-of-several-instances.cu:4:36]
//  3 │
//  4 │ template <class T> __global__ void k(const T *a, T *c, int n) {
//    ·                                    ┬
//    ·                                    ╰── this template
//  5 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  6 │     if (x < n) c[x] = a[x];
//  7 │ }
//  8 │ template __global__ void k<float>(const float *, float *, int);
//    ·                          ┬
//    ·                          ╰── in this way
//  9 │ template __global__ void k<double>(const double *, double *, int);
//    ·                          ┬
//    ·                          ╰── and in this
//    ╰────
