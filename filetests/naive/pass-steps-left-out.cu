// A `continue` leaves the step out.
// test: accesses

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    int j = 0;
    while (j < m) {
        if (a[j * n + x] < 0.0f) continue;
        sum += a[j * n + x];
        j++;
    }
    c[x] = sum;
}

// expect: accesses
// a: an unresolved index, left as it is
// c[x]: neighbouring threads have neighbours: coalesced
