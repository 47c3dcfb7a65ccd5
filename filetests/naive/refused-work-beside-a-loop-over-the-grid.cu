// test: accesses
//  every thread stores its sum

__global__ void k(const float *a, float *c, int n, int m) {
    float sum = 0.0f;
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += blockDim.x * gridDim.x) sum += a[i];
    c[first] = sum;
}

// expect: accesses
// naive::construct
//
//   × a loop over the grid beside other statements
//    ╭─[refused-work-beside-a-loop-over-the-grid.cu:7:5]
//  6 │     int first = blockIdx.x * blockDim.x + threadIdx.x;
//  7 │     for (int i = first; i < n; i += blockDim.x * gridDim.x) sum += a[i];
//    ·     ──────────────────────────────────┬─────────────────────────────────
//    ·                                       ╰── this is no naive kernel
//  8 │     c[first] = sum;
//    ╰────
