// test: accesses
//  a thread goes on with what its turn before left

__global__ void k(const float *a, float *c, int n, int m) {
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        sum += a[i];
        c[i] = sum;
    }
}

// expect: accesses
// naive::construct
//
//   × a value that is carried around a loop over the grid
//    ╭─[refused-carried-around-the-grid.cu:7:9]
//  6 │     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
//  7 │         sum += a[i];
//    ·         ─────┬─────
//    ·              ╰── this is no naive kernel
//  8 │         c[i] = sum;
//    ╰────
