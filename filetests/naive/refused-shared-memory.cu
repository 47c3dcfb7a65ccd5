// test: accesses
//  no longer naive

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    __shared__ int s[32]; c[x] = a[x];
}

// expect: accesses
// naive::construct
//
//   × shared memory
//    ╭─[refused-shared-memory.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     __shared__ int s[32]; c[x] = a[x];
//    ·     ──────────┬──────────
//    ·               ╰── this is no naive kernel
//  8 │ }
//    ╰────
