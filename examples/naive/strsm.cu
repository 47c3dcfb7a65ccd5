// Triangular solve with many right-hand sides (Table 1 of Yang et al., PLDI 2010): L X = B, L below the
// diagonal and on it, X in the place of B. A thread solves for one column.

#pragma warpwright naive sizes(m=4096, n=4096) outputs(b)
extern "C" __global__ void strsm(const float *l, float *b, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    for (int i = 0; i < m; i++) {
        float sum = b[i * n + idx];
        for (int j = 0; j < i; j++) sum -= l[i * m + j] * b[j * n + idx];
        b[i * n + idx] = sum / l[i * m + i];
    }
}

extern "C" void run_strsm(const float *l, float *b, int m, int n, cudaStream_t stream) {
    strsm<<<(n + 255) / 256, 256, 0, stream>>>(l, b, m, n);
}
