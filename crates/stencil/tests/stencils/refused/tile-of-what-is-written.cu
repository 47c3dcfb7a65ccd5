#define B 8
__global__ void f(double *a, int n) {
    __shared__ double tile[B];
    const int i = blockIdx.x * B + threadIdx.x;
    if (i < n) tile[threadIdx.x] = a[i];
    __syncthreads();
    if (i < n) {
        a[i] = 1.0;
        a[i] += tile[threadIdx.x];
    }
}
// expect:
// stencil::in-place
//
//   × values of `a` are kept while it is written
//    ╭─[tile-of-what-is-written.cu:5:36]
//  4 │     const int i = blockIdx.x * B + threadIdx.x;
//  5 │     if (i < n) tile[threadIdx.x] = a[i];
//    ·                                    ──┬─
//    ·                                      ╰── kept here
//  6 │     __syncthreads();
//  7 │     if (i < n) {
//  8 │         a[i] = 1.0;
//    ·         ──┬─
//    ·           ╰── written here
//  9 │         a[i] += tile[threadIdx.x];
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
