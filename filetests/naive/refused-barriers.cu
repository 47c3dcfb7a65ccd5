// test: accesses
//  threads that wait for each other

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    c[x] = a[x]; __syncthreads();
}

// expect: accesses
// naive::construct
//
//   × a barrier
//    ╭─[refused-barriers.cu:7:18]
//  6 │     if (x >= n) return;
//  7 │     c[x] = a[x]; __syncthreads();
//    ·                  ───────┬───────
//    ·                         ╰── this is no naive kernel
//  8 │ }
//    ╰────
