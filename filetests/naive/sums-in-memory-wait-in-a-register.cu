// test: naive tiles(256x1)
//  c[x] is stored once

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    c[x] = 0;
    for (int i = 0; i < m; i++) c[x] += a[i * n + x];
}

// expect: naive tiles(256x1)
// block merge: a block of 256 threads computes 256 points
//
// k_tuned: 256 threads for 256 x 1 x 1 points
//     const int block_x = blockIdx.x * 256;
//     const int x = block_x + (int)threadIdx.x;
//     if (x >= x_end) return;
//     float c_kept = 0;
//     for (int i = 0; i < m; ++i) {
//         c_kept += a[n * i + x];
//     }
//     c[x] = c_kept;
