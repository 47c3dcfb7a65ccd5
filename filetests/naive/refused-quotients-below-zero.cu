// test: accesses
//  a quotient of what may be negative is rounded to zero, not down

__global__ void k(const float *a, float *c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * m) return;
    c[((i - m) / m + 1) * m + (i - m) % m + m] = a[i];
}

// expect: accesses
// naive::construct
//
//   × a store at an unresolved index
//    ╭─[refused-quotients-below-zero.cu:7:5]
//  6 │     if (i >= n * m) return;
//  7 │     c[((i - m) / m + 1) * m + (i - m) % m + m] = a[i];
//    ·     ────────────────────────┬────────────────────────
//    ·                             ╰── this is no naive kernel
//  8 │ }
//    ╰────
