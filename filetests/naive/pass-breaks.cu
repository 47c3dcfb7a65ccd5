// The turns end where the text says so.
// test: pass tiles(256x1)

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    for (int i = 0; i < n; i++) { if (a[i] > x) break; c[x] = i; }
}

// expect: pass tiles(256x1)
// k: unchanged: which elements of `a` are touched is not known, and it may overlap an array that is stored to
