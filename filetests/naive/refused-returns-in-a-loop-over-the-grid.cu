// test: accesses
//  a `return` ends the turns that follow as well

__global__ void k(const float *a, float *c, int n, int m) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        if (a[i] < 0.0f) return;
        c[i] = a[i];
    }
}

// expect: accesses
// naive::construct
//
//   × a return inside a loop or a condition
//    ╭─[refused-returns-in-a-loop-over-the-grid.cu:6:26]
//  5 │     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
//  6 │         if (a[i] < 0.0f) return;
//    ·                          ───┬───
//    ·                             ╰── this is no naive kernel
//  7 │         c[i] = a[i];
//    ╰────
