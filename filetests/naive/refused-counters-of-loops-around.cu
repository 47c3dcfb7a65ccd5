// test: accesses
//  the counter goes on where it was

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    int j = 0;
    for (int i = 0; i < m; i++) {
        while (j < m) {
            sum += a[j * n + x];
            j++;
        }
    }
    c[x] = sum;
}

// expect: accesses
// naive::construct
//
//   × a loop that does not count upwards by a number
//     ╭─[refused-counters-of-loops-around.cu:10:9]
//   9 │         for (int i = 0; i < m; i++) {
//  10 │ ╭─▶         while (j < m) {
//  11 │ │               sum += a[j * n + x];
//  12 │ │               j++;
//  13 │ ├─▶         }
//     · ╰──── this is no naive kernel
//  14 │         }
//     ╰────
