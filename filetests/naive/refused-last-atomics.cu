// test: accesses
//  the last point wins

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    atomicExch(&c[a[x] & 15], x);
}

// expect: accesses
// naive::construct
//
//   × an atomic operation whose order counts
//    ╭─[refused-last-atomics.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     atomicExch(&c[a[x] & 15], x);
//    ·     ──────────────┬─────────────
//    ·                   ╰── this is no naive kernel
//  8 │ }
//    ╰────
