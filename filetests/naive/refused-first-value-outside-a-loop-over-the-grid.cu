// test: accesses
//  the same, loaded before the loop

__global__ void k(const float *a, float *c, int n, int m) {
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    float f = a[first];
    for (int i = first; i < n; i += blockDim.x * gridDim.x) c[i] = f;
}

// expect: accesses
// naive::construct
//
//   × the place of a thread outside of its loop over the grid
//    ╭─[refused-first-value-outside-a-loop-over-the-grid.cu:7:5]
//  6 │     float f = a[first];
//  7 │     for (int i = first; i < n; i += blockDim.x * gridDim.x) c[i] = f;
//    ·     ────────────────────────────────┬────────────────────────────────
//    ·                                     ╰── this is no naive kernel
//  8 │ }
//    ╰────
