// Points of a column share an element: each thread has its own.
// test: pass totals(32,1)
// test: pass totals(64,5)

__global__ void counts(const double *a, double *sums, int *least, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 2 || x >= width || y >= height) return;
    atomicAdd(&sums[x], a[y * width + x]);
    atomicMin(&least[x - 2], (int)(a[y * width + x] * 100));
}

// expect: pass totals(32,1)
// counts: what goes to `sums`, `least` is added up in registers before, for all of a thread's points: 1
// counts: caution: sums are in another order, as its pragma or its atomics permit: within 1e-5 (float) or 1e-13 (double) of the largest value
// totals(32, 1): the same in the emulator

// expect: pass totals(64,5)
// counts: what goes to `sums`, `least` is added up in registers before, for all of a thread's points: 5
// counts: caution: sums are in another order, as its pragma or its atomics permit: within 1e-5 (float) or 1e-13 (double) of the largest value
// totals(64, 5): the same in the emulator
