// test: accesses
//  each block has another row, but all have the same threads

__global__ void k(const float *a, float *c) {
    c[threadIdx.x] = a[blockIdx.x];
}

// expect: accesses
// naive::construct
//
//   × a place in the block, or the block's size, by itself
//    ╭─[refused-threads-of-several-blocks.cu:5:5]
//  4 │ __global__ void k(const float *a, float *c) {
//  5 │     c[threadIdx.x] = a[blockIdx.x];
//    ·     ───────────────┬──────────────
//    ·                    ╰── this is no naive kernel
//  6 │ }
//    ╰────
