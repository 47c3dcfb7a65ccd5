// test: accesses
//  a thread computes several elements

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    c[x] = a[x] * gridDim.x;
}

// expect: accesses
// naive::construct
//
//   × a loop over the grid, or `gridDim`
//    ╭─[refused-grid-strides.cu:7:19]
//  6 │     if (x >= n) return;
//  7 │     c[x] = a[x] * gridDim.x;
//    ·                   ────┬────
//    ·                       ╰── this is no naive kernel
//  8 │ }
//    ╰────
