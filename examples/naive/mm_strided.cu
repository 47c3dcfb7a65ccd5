// A product of matrices that are parts of larger ones: a, b and c have rows of lda, ldb and ldc elements.

#pragma warpwright naive sizes(m=2048, n=2048, k=2048, lda=2080, ldb=2112, ldc=2056) outputs(c)
extern "C" __global__ void mm_strided(const float *a, const float *b, float *c, int m, int n, int k, int lda,
                                      int ldb, int ldc) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[idy * lda + i] * b[i * ldb + idx];
    c[idy * ldc + idx] = sum;
}

extern "C" void run_mm_strided(const float *a, const float *b, float *c, int m, int n, int k, int lda, int ldb,
                               int ldc, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    mm_strided<<<grid, block, 0, stream>>>(a, b, c, m, n, k, lda, ldb, ldc);
}
