// test: naive tiles(128x1, points=2x1)
//  what all points begin with and each changes behind a return is one variable for each of them

__global__ void counted(const int *a, const int *b, int *out, int n, int k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    int sum = 1;
    for (int i = 0; i < k; i++) {
        if (a[i] > 7) return;
        sum += a[i];
    }
    int by = 1;
    for (int j = 0; j < k && by < 9; j++, by += 2) sum += b[j] * by;
    out[x] = x + sum;
}

// expect: naive tiles(128x1, points=2x1)
// block merge: a block of 128 threads computes 256 points
// thread merge: a thread computes 2 points, and what they share is loaded once
//
// counted_tuned: 128 threads for 256 x 1 x 1 points
//     const int thread = threadIdx.x;
//     const int block_x = blockIdx.x * 256;
// #pragma unroll
//     for (int px = 0; px < 2; ++px) {
//         const int x = block_x + px * 128 + thread;
//         if (x < x_end) {
//             int sum = 1;
//             bool still_1_staying = true;
//             int i = 0;
//             bool still_2_turning = true;
//             while (still_2_turning && i < k) {
//                 if (a[i] > 7) {
//                     still_1_staying = false;
//                     still_2_turning = false;
//                 }
//                 if (still_2_turning) {
//                     sum += a[i];
//                 }
//                 if (still_2_turning) {
//                     i += 1;
//                 }
//             }
//             if (still_1_staying) {
//                 int by = 1;
//                 int j = 0;
//                 while (j < k && by < 9) {
//                     sum += b[j] * by;
//                     j += 1;
//                     by += 2;
//                 }
//                 out[x] = x + sum;
//             }
//         }
//     }
