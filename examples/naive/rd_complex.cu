// The sum of the absolute values of the parts of complex numbers (Yang et al., PLDI 2010, section 6.2,
// Figure 14), real and imaginary parts in turn.

#pragma warpwright naive sizes(n=8388608) outputs(s) reassociate
extern "C" __global__ void rd_complex(const float *a, float *s, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= 1) return;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        float re = a[2 * i];
        float im = a[2 * i + 1];
        sum += fabsf(re) + fabsf(im);
    }
    s[idx] = sum;
}

extern "C" void run_rd_complex(const float *a, float *s, int n, cudaStream_t stream) {
    rd_complex<<<1, 32, 0, stream>>>(a, s, n);
}
