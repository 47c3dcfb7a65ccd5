// test: accesses
//  the points of threads that left are not computed

__global__ void k(const float *a, float *c, int n, int m) {
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    if (first >= m) return;
    for (int i = first; i < n; i += blockDim.x * gridDim.x) c[i] = a[i];
}

// expect: accesses
// naive::construct
//
//   × the place of a thread outside of its loop over the grid
//    ╭─[refused-threads-that-leave-before-a-loop-over-the-grid.cu:7:5]
//  6 │     if (first >= m) return;
//  7 │     for (int i = first; i < n; i += blockDim.x * gridDim.x) c[i] = a[i];
//    ·     ──────────────────────────────────┬─────────────────────────────────
//    ·                                       ╰── this is no naive kernel
//  8 │ }
//    ╰────
