// The sum of a vector (Table 1 of Yang et al., PLDI 2010): one element comes out, so there is one thread.

#pragma warpwright naive sizes(n=16777216) outputs(s) reassociate
extern "C" __global__ void rd(const float *a, float *s, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= 1) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += a[i];
    s[idx] = sum;
}

extern "C" void run_rd(const float *a, float *s, int n, cudaStream_t stream) {
    rd<<<1, 32, 0, stream>>>(a, s, n);
}
