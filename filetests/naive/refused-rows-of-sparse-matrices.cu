// test: accesses
//  how many turns there are stands in memory

__global__ void k(const int *start, const int *column, const float *a, const float *b, float *c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0.0f;
    for (int j = start[row]; j < start[row + 1]; j++) sum += a[j] * b[column[j]];
    c[row] = sum;
}

// expect: accesses
// naive::construct
//
//   × a loop whose bounds are read from memory, or no sums of sizes and places
//    ╭─[refused-rows-of-sparse-matrices.cu:8:5]
//  7 │     float sum = 0.0f;
//  8 │     for (int j = start[row]; j < start[row + 1]; j++) sum += a[j] * b[column[j]];
//    ·     ──────────────────────────────────────┬──────────────────────────────────────
//    ·                                           ╰── this is no naive kernel
//  9 │     c[row] = sum;
//    ╰────
