// One step of a fast Fourier transform with 2 points a thread (Yang et al., PLDI 2010, section 7), sorted as
// it goes: p is 1, 2, 4, … n / 2. w holds exp(-2 pi i k / n).

#pragma warpwright naive sizes(n=1048576, p=1) outputs(y)
extern "C" __global__ void fft2(const float *x, const float *w, float *y, int n, int p) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n / 2) return;
    int k = idx % p;
    int out = 2 * idx - k;
    int t = n / 2 / p * k;
    float wr = w[2 * t];
    float wi = w[2 * t + 1];
    float ar = x[2 * idx];
    float ai = x[2 * idx + 1];
    float br = x[2 * idx + n];
    float bi = x[2 * idx + n + 1];
    float cr = br * wr - bi * wi;
    float ci = br * wi + bi * wr;
    y[2 * out] = ar + cr;
    y[2 * out + 1] = ai + ci;
    y[2 * out + 2 * p] = ar - cr;
    y[2 * out + 2 * p + 1] = ai - ci;
}

// x is overwritten; the spectrum is in y where the number of steps is odd, else in x.
extern "C" void run_fft2(float *x, const float *w, float *y, int n, int p, cudaStream_t stream) {
    for (; p < n; p *= 2) {
        fft2<<<(n / 2 + 255) / 256, 256, 0, stream>>>(x, w, y, n, p);
        float *other = x;
        x = y;
        y = other;
    }
}
