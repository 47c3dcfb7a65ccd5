// Points of a row share an element, and all points another one.
// test: pass totals(32,1)
// test: pass totals(128,3)

__global__ void counts(const float *a, float *sums, int *most, unsigned *all, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float value = a[y * width + x];
    atomicAdd(&sums[y], value);
    atomicMax(&most[y], (int)(value * 1000.0f));
    if (value > 0.75f) atomicOr(all, 1u << (x & 31));
}

// expect: pass totals(32,1)
// counts: what goes to `sums`, `most`, `all` is added up in registers before, for all of a thread's points: 1
// counts: caution: sums are in another order, as its pragma or its atomics permit: within 1e-5 (float) or 1e-13 (double) of the largest value
// totals(32, 1): the same in the emulator

// expect: pass totals(128,3)
// counts: what goes to `sums`, `most`, `all` is added up in registers before, for all of a thread's points: 3
// counts: caution: sums are in another order, as its pragma or its atomics permit: within 1e-5 (float) or 1e-13 (double) of the largest value
// totals(128, 3): the same in the emulator
