// test: accesses
//  the first element that is no number ends the turns

__global__ void k(const float *a, float *c, int n, int m) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n && a[i] > 0.0f; i += blockDim.x * gridDim.x)
        c[i] = a[i];
}

// expect: accesses
// naive::construct
//
//   × a loop over the grid whose end is not a sum of sizes
//    ╭─[refused-ends-of-loops-over-the-grid.cu:5:5]
//  4 │     __global__ void k(const float *a, float *c, int n, int m) {
//  5 │ ╭─▶     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n && a[i] > 0.0f; i += blockDim.x * gridDim.x)
//  6 │ ├─▶         c[i] = a[i];
//    · ╰──── this is no naive kernel
//  7 │     }
//    ╰────
