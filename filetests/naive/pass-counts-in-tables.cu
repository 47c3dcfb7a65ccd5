// Bytes, masks and conditions say how long tables are.
// test: pass totals(32,1)
// test: pass totals(128,2)

__global__ void counts(const uchar4 *a, const int *b, int *red, unsigned *low, int *few, int count, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    uchar4 pixel = a[x];
    int place = b[x];
    atomicAdd(&red[pixel.x], 1);
    atomicXor(&low[pixel.y & 15], (unsigned)b[x]);
    if (place < count) atomicMax(&few[place], x);
}

// expect: pass totals(32,1)
// counts: a block counts in shared memory what goes to `red`, `low`, `few`, and changes each element there once
// totals(32, 1): the same in the emulator

// expect: pass totals(128,2)
// counts: a block counts in shared memory what goes to `red`, `low`, `few`, and changes each element there once
// totals(128, 2): the same in the emulator
