// test: accesses
//  the order of the points counts: what the operation gives back is used, or kept

__global__ void k(const int *a, int *c, int *count, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    if (a[x] > 0) c[atomicAdd(count, 1)] = a[x];
}

// expect: accesses
// naive::construct
//
//   × an atomic operation
//    ╭─[refused-atomics.cu:7:21]
//  6 │     if (x >= n) return;
//  7 │     if (a[x] > 0) c[atomicAdd(count, 1)] = a[x];
//    ·                     ─────────┬─────────
//    ·                              ╰── this is no naive kernel
//  8 │ }
//    ╰────
