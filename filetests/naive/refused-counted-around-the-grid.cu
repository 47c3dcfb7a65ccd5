// test: accesses
//  the inner counter is set once for all turns

__global__ void k(const float *a, float *c, int n, int m) {
    int j = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        float sum = 0.0f;
        while (j < m) {
            sum += a[j * n + i];
            j++;
        }
        c[i] = sum;
    }
}

// expect: accesses
// naive::construct
//
//   × a loop that does not count upwards by a number
//     ╭─[refused-counted-around-the-grid.cu:8:9]
//   7 │             float sum = 0.0f;
//   8 │ ╭─▶         while (j < m) {
//   9 │ │               sum += a[j * n + i];
//  10 │ │               j++;
//  11 │ ├─▶         }
//     · ╰──── this is no naive kernel
//  12 │             c[i] = sum;
//     ╰────
