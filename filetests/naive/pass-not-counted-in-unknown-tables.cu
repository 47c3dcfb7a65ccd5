// How many elements are counted in is not known, so nothing says what a table would stand for.
// test: pass totals(64,4)
// test: accesses

__global__ void histogram(const int *data, int *bins, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) atomicAdd(&bins[data[x]], 1);
}

// expect: pass totals(64,4)
// histogram: unchanged: how many elements are counted in is not known, or large

// expect: accesses
// data[x]: neighbouring threads have neighbours: coalesced
// bins: counted in at an unresolved index, and nothing says how many elements it has: `if (0 <= i && i < count)` around it would
