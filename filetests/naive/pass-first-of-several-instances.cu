// The first instance is the kernel; the launcher leaves the others as they were written.
// test: pass tiles(256x1)

template <class T> __global__ void k(const T *a, T *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x];
}

template <class T> void launched(const T *a, T *c, int n) { k<T><<<(n + 255) / 256, 256>>>(a, c, n); }

void all(const float *a, float *c, const double *b, double *d, int n) {
    launched<float>(a, c, n);
    launched<double>(b, d, n);
}

// expect: pass tiles(256x1)
// k: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
