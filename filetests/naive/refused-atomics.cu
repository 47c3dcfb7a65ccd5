// test: accesses
//  counted by all points: no point's own

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    atomicAdd(&c[a[x]], 1);
}

// expect: accesses
// naive::construct
//
//   × an atomic operation
//    ╭─[refused-atomics.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     atomicAdd(&c[a[x]], 1);
//    ·     ───────────┬──────────
//    ·                ╰── this is no naive kernel
//  8 │ }
//    ╰────
