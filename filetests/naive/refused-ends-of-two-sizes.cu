// test: accesses
//  whichever end were taken, the other could be far behind it

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < min(m, x); i++) sum += a[i * n + x];
    c[x] = sum;
}

// expect: accesses
// naive::construct
//
//   × a loop whose bounds are read from memory, or no sums of sizes and places
//    ╭─[refused-ends-of-two-sizes.cu:8:5]
//  7 │     float sum = 0.0f;
//  8 │     for (int i = 0; i < min(m, x); i++) sum += a[i * n + x];
//    ·     ────────────────────────────┬───────────────────────────
//    ·                                 ╰── this is no naive kernel
//  9 │     c[x] = sum;
//    ╰────
