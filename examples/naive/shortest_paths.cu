// The shortest way between all pairs of points by one point more: the product of two matrices where sums
// are minima and products sums.

#pragma warpwright naive sizes(n=2048) outputs(out)
extern "C" __global__ void shortest_paths(const float *a, const float *b, float *out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= n) return;
    float least = 1e30f;
    for (int i = 0; i < n; i++) least = fminf(least, a[idy * n + i] + b[i * n + idx]);
    out[idy * n + idx] = least;
}

extern "C" void run_shortest_paths(const float *a, const float *b, float *out, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    shortest_paths<<<grid, block, 0, stream>>>(a, b, out, n);
}
