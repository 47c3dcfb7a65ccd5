// test: accesses
//  what a point reads depends on how far the others are

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    atomicAdd(&c[a[x] & 15], c[16]);
}

// expect: accesses
// naive::independent
//
//   × `c` is changed atomically, and read or stored to as well
//    ╭─[refused-counted-and-read.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     atomicAdd(&c[a[x] & 15], c[16]);
//    ·     ───────────────┬───────────────┬
//    ·                    │               ╰── accessed here
//    ·                    ╰── changed here
//  8 │ }
//    ╰────
