// How many turns is not known.
// test: accesses

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    while (c[x] < a[x]) c[x] += 1;
}

// expect: accesses
// c[x]: neighbouring threads have neighbours: coalesced
// a[x]: neighbouring threads have neighbours: coalesced
