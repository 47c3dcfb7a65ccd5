// test: naive totals(128, 2)
//  a variable that is a place first and a number of its own further down is not declared in the place's own name

#pragma warpwright naive reassociate
__global__ void rows(float *sums, const float *a, int n, int m, int d, int k) {
    int flat = blockIdx.x * blockDim.x + threadIdx.x;
    int rest = flat;
    int column = rest % n;
    rest = rest / n;
    int row = rest % m;
    rest = rest / m;
    int plane = rest % d;
    rest = rest / d;
    if (rest >= k) return;
    atomicAdd(&sums[row], a[column] + plane);
}

// expect: naive totals(128, 2)
// what goes to `sums` is added up in registers before, for all of a thread's points: 2
//
// rows_totals: 128 threads for 256 x 1 x 1 points
//     float sums_own = 0;
//     const int first = blockIdx.x * 256 + threadIdx.x;
//     const int row = blockIdx.y;
//     const int rest_ = blockIdx.z;
//     for (int turn = 0; turn < 2; turn++) {
//         const int column = first + turn * 128;
//         if (column >= column_end) break;
//         int plane = rest_ % d;
//         int rest = rest_ / d;
//         if (!(rest >= k)) {
//             sums_own = sums_own + (float)(a[column] + plane);
//         }
//     }
//     for (int far = 16; far > 0; far /= 2) sums_own = sums_own + __shfl_xor_sync(0xffffffff, sums_own, far);
//     __shared__ float sums_own_parts[4];
//     if (threadIdx.x % 32 == 0) sums_own_parts[threadIdx.x / 32] = sums_own;
//     __syncthreads();
//     if (threadIdx.x == 0) {
//         for (int warp = 1; warp < 4; warp++) sums_own = sums_own + sums_own_parts[warp];
//         if (sums_own != 0) atomicAdd(&sums[row], sums_own);
//     }
