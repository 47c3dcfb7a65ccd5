// test: accesses
//  the point at k stores the pivot that the others read

__global__ void k(float *a, int n, int k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= k && x < n) a[k * n + x] = a[k * n + x] / a[k * n + k];
}

// expect: accesses
// naive::independent
//
//   × points may share elements of `a`, which is stored to
//    ╭─[refused-loads-that-a-point-stores.cu:6:26]
//  5 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  6 │     if (x >= k && x < n) a[k * n + x] = a[k * n + x] / a[k * n + k];
//    ·                          ─────────────────────┬────────────────────┬
//    ·                                               │                    ╰── accessed here
//    ·                                               ╰── stored here
//  7 │ }
//    ╰────
