// A number below zero is a very large one beside a place without a sign: the guard never holds.
// test: accesses

__global__ void sums(const float *a, float *b, int n, int m) {
    size_t j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j > -1 && j < n) {
        float s = 0;
        for (int t = 0; t < m; ++t) s += a[t * n + j];
        b[j] = s;
    }
}

// expect: accesses
// naive::construct
//
//   × a number below zero beside one without a sign
//    ╭─[refused-numbers-without-a-sign.cu:6:9]
//  5 │     size_t j = blockIdx.x * blockDim.x + threadIdx.x;
//  6 │     if (j > -1 && j < n) {
//    ·         ───┬──
//    ·            ╰── this is no naive kernel
//  7 │         float s = 0;
//    ╰────
