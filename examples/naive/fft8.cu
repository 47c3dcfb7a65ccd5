// One step of a fast Fourier transform with 8 points a thread (Yang et al., PLDI 2010, section 7), sorted as
// it goes: p is 1, 8, 64, … n / 8. w holds exp(-2 pi i k / n) for all k below n.

#pragma warpwright naive sizes(n=1048576, p=1) outputs(y)
extern "C" __global__ void fft8(const float *x, const float *w, float *y, int n, int p) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n / 8) return;
    int k = idx % p;
    int out = 8 * (idx - k) + k;
    int t = n / 8 / p * k;
    int q = n / 4;
    float r0 = x[2 * idx], i0 = x[2 * idx + 1];
    float xr, xi, wr, wi;
    xr = x[2 * idx + q], xi = x[2 * idx + q + 1], wr = w[2 * t], wi = w[2 * t + 1];
    float r1 = xr * wr - xi * wi, i1 = xr * wi + xi * wr;
    xr = x[2 * idx + 2 * q], xi = x[2 * idx + 2 * q + 1], wr = w[4 * t], wi = w[4 * t + 1];
    float r2 = xr * wr - xi * wi, i2 = xr * wi + xi * wr;
    xr = x[2 * idx + 3 * q], xi = x[2 * idx + 3 * q + 1], wr = w[6 * t], wi = w[6 * t + 1];
    float r3 = xr * wr - xi * wi, i3 = xr * wi + xi * wr;
    xr = x[2 * idx + 4 * q], xi = x[2 * idx + 4 * q + 1], wr = w[8 * t], wi = w[8 * t + 1];
    float r4 = xr * wr - xi * wi, i4 = xr * wi + xi * wr;
    xr = x[2 * idx + 5 * q], xi = x[2 * idx + 5 * q + 1], wr = w[10 * t], wi = w[10 * t + 1];
    float r5 = xr * wr - xi * wi, i5 = xr * wi + xi * wr;
    xr = x[2 * idx + 6 * q], xi = x[2 * idx + 6 * q + 1], wr = w[12 * t], wi = w[12 * t + 1];
    float r6 = xr * wr - xi * wi, i6 = xr * wi + xi * wr;
    xr = x[2 * idx + 7 * q], xi = x[2 * idx + 7 * q + 1], wr = w[14 * t], wi = w[14 * t + 1];
    float r7 = xr * wr - xi * wi, i7 = xr * wi + xi * wr;
    // The even points, 0 2 4 6, and the odd ones, as transforms of four.
    float ar = r0 + r4, ai = i0 + i4, br = r0 - r4, bi = i0 - i4;
    float cr = r2 + r6, ci = i2 + i6, dr = i2 - i6, di = r6 - r2;
    float er = r1 + r5, ei = i1 + i5, fr = r1 - r5, fi = i1 - i5;
    float gr = r3 + r7, gi = i3 + i7, hr = i3 - i7, hi = r7 - r3;
    float e0r = ar + cr, e0i = ai + ci, e2r = ar - cr, e2i = ai - ci;
    float e1r = br + dr, e1i = bi + di, e3r = br - dr, e3i = bi - di;
    float o0r = er + gr, o0i = ei + gi, o2r = ei - gi, o2i = gr - er;
    float o1r = fr + hr, o1i = fi + hi, o3r = fr - hr, o3i = fi - hi;
    float s = 0.70710678f;
    float u1r = s * (o1r + o1i), u1i = s * (o1i - o1r);
    float u3r = s * (o3i - o3r), u3i = -s * (o3r + o3i);
    y[2 * out] = e0r + o0r;
    y[2 * out + 1] = e0i + o0i;
    y[2 * out + 2 * p] = e1r + u1r;
    y[2 * out + 2 * p + 1] = e1i + u1i;
    y[2 * out + 4 * p] = e2r + o2r;
    y[2 * out + 4 * p + 1] = e2i + o2i;
    y[2 * out + 6 * p] = e3r + u3r;
    y[2 * out + 6 * p + 1] = e3i + u3i;
    y[2 * out + 8 * p] = e0r - o0r;
    y[2 * out + 8 * p + 1] = e0i - o0i;
    y[2 * out + 10 * p] = e1r - u1r;
    y[2 * out + 10 * p + 1] = e1i - u1i;
    y[2 * out + 12 * p] = e2r - o2r;
    y[2 * out + 12 * p + 1] = e2i - o2i;
    y[2 * out + 14 * p] = e3r - u3r;
    y[2 * out + 14 * p + 1] = e3i - u3i;
}

// What is left where n is no power of eight, two points a thread.
extern "C" __global__ void rest(const float *x, const float *w, float *y, int n, int p) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n / 2) return;
    int k = idx % p;
    int out = 2 * idx - k;
    int t = n / 2 / p * k;
    float cr = x[2 * idx + n] * w[2 * t] - x[2 * idx + n + 1] * w[2 * t + 1];
    float ci = x[2 * idx + n] * w[2 * t + 1] + x[2 * idx + n + 1] * w[2 * t];
    y[2 * out] = x[2 * idx] + cr;
    y[2 * out + 1] = x[2 * idx + 1] + ci;
    y[2 * out + 2 * p] = x[2 * idx] - cr;
    y[2 * out + 2 * p + 1] = x[2 * idx + 1] - ci;
}

// x is overwritten; the spectrum is in y where the number of steps is odd, else in x.
extern "C" void run_fft8(float *x, const float *w, float *y, int n, int p, cudaStream_t stream) {
    while (p < n) {
        if (p <= n / 8) {
            fft8<<<(n / 8 + 255) / 256, 256, 0, stream>>>(x, w, y, n, p);
            p *= 8;
        } else {
            rest<<<(n / 2 + 255) / 256, 256, 0, stream>>>(x, w, y, n, p);
            p *= 2;
        }
        float *other = x;
        x = y;
        y = other;
    }
}
