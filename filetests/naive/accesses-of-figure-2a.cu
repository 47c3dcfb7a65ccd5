// test: accesses
//  section 3.2 of Yang et al.: the matrix multiplication of Fig. 2a

__global__ void mm(const float *a, const float *b, float *c, int w, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < w; i++) sum += a[idy * w + i] * b[i * n + idx];
    c[idy * n + idx] = sum;
}

// expect: accesses
// a[w * idy + i]: the same element for neighbouring threads
// b[n * i + idx]: neighbouring threads have neighbours: coalesced
// c[n * idy + idx]: neighbouring threads have neighbours: coalesced
