// test: accesses
//  rows of blocks, and rows in a row of blocks

__global__ void k(const float *a, float *c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * m) return;
    c[(blockIdx.y * m + i % m) * n + i / m] = a[i];
}

// expect: accesses
// naive::construct
//
//   × a place that is taken apart beside another one
//    ╭─[refused-places-taken-apart-beside-others.cu:4:17]
//  3 │
//  4 │ __global__ void k(const float *a, float *c, int n, int m) {
//    ·                 ┬
//    ·                 ╰── this is no naive kernel
//  5 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
