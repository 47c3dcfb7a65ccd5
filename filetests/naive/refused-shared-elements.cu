// test: accesses
//  all points store c[0]

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    c[0] = a[x];
}

// expect: accesses
// naive::independent
//
//   × all points along `x` store the same element of `c`
//    ╭─[refused-shared-elements.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     c[0] = a[x];
//    ·     ─────┬─────
//    ·          ╰── stored here
//  8 │ }
//    ╰────
