// test: naive across(32, 8)
//  section 3.3: neighbours store neighbours, and load through a square

__global__ void tp(const float *a, float *b, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < m) b[x * m + y] = a[y * n + x];
}

// expect: naive across(32, 8)
// the lanes of a warp are points along y, so that neighbours store neighbouring elements
// `a` goes through shared memory in squares of 32, so that neighbours load neighbouring elements
//
// tp_across: 256 threads for 32 x 32 x 1 points
//     const int lane = threadIdx.x % 32;
//     const int first = threadIdx.x / 32;
//     const int corner_x = blockIdx.x * 32;
//     const int corner_y = blockIdx.y * 32;
//     __shared__ float a_square[32][33];
//     #pragma unroll
//     for (int step = 0; step < 32; step += 8) {
//         const int row = step + first;
//         const int y = corner_y + row;
//         const int x = corner_x + lane;
//         if (x < x_end && y < y_end) {
//             a_square[row][lane] = a[n * y + x];
//         }
//     }
//     __syncthreads();
//     #pragma unroll
//     for (int step = 0; step < 32; step += 8) {
//         const int row = step + first;
//         const int y = corner_y + lane;
//         const int x = corner_x + row;
//         if (x < x_end && y < y_end) {
//             b[m * x + y] = a_square[lane][row];
//         }
//     }
