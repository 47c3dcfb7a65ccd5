// test: accesses
//  a thread that leaves does none of its later turns

__global__ void k(const float *a, float *c, int n, int m) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        for (int j = 0; j < m; j++) {
            if (a[j] < 0.0f) return;
        }
        c[i] = a[i];
    }
}

// expect: accesses
// naive::construct
//
//   × a return inside a loop or a condition
//    ╭─[refused-returns-around-the-grid.cu:7:30]
//  6 │         for (int j = 0; j < m; j++) {
//  7 │             if (a[j] < 0.0f) return;
//    ·                              ───┬───
//    ·                                 ╰── this is no naive kernel
//  8 │         }
//    ╰────
