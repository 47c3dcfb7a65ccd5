// test: accesses
//  two points may store one element

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    c[a[x]] = x;
}

// expect: accesses
// naive::construct
//
//   × a store at an unresolved index
//    ╭─[refused-scattered-stores.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     c[a[x]] = x;
//    ·     ─────┬─────
//    ·          ╰── this is no naive kernel
//  8 │ }
//    ╰────
