// Batched complex FFT of 512 points in double precision, one transform per block of 64 threads.
//
// 512 = 8 * 8 * 8: every thread holds eight complex numbers in registers and does three radix-8
// butterflies; between them the block exchanges through shared memory (real parts first, then
// imaginary parts, so that 4.5 KB suffice). With n = 64 j + 8 j' + t and output k + 8 k' + 64 k''
// the transform is  sum_t w8^(t k'') w64^(t k') sum_j' w8^(j' k') w512^((8 j' + t) k) sum_j w8^(j k).

namespace {

constexpr int POINTS = 512;
constexpr int THREADS = 64;
constexpr int RADIX = 8;
constexpr int ROW = THREADS + RADIX;  // padded against bank conflicts

struct Complex {
    double re, im;
};

__device__ __forceinline__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// a * -i
__device__ __forceinline__ Complex rotate(Complex a) { return {a.im, -a.re}; }

// In place: a[k] = sum_j a[j] exp(-2 pi i j k / 8), decimated in frequency, output in order.
__device__ __forceinline__ void butterfly(Complex (&a)[RADIX]) {
    const double h = 0.70710678118654752440;
    Complex s0 = a[0] + a[4], s1 = a[1] + a[5], s2 = a[2] + a[6], s3 = a[3] + a[7];
    Complex d0 = a[0] - a[4], d1 = a[1] - a[5], d2 = a[2] - a[6], d3 = a[3] - a[7];
    d1 = {h * (d1.re + d1.im), h * (d1.im - d1.re)};   // times exp(-i pi / 4)
    d2 = rotate(d2);                                   // times exp(-i pi / 2)
    d3 = {h * (d3.im - d3.re), -h * (d3.re + d3.im)};  // times exp(-i 3 pi / 4)
    Complex e0 = s0 + s2, e1 = s1 + s3, e2 = s0 - s2, e3 = rotate(s1 - s3);
    Complex o0 = d0 + d2, o1 = d1 + d3, o2 = d0 - d2, o3 = rotate(d1 - d3);
    a[0] = e0 + e1;
    a[4] = e0 - e1;
    a[2] = e2 + e3;
    a[6] = e2 - e3;
    a[1] = o0 + o1;
    a[5] = o0 - o1;
    a[3] = o2 + o3;
    a[7] = o2 - o3;
}

// a[k] *= exp(-2 pi i k t / n)
__device__ __forceinline__ void twiddle(Complex (&a)[RADIX], int t, double two_over_n) {
    Complex w;
    sincospi(-t * two_over_n, &w.im, &w.re);
    Complex w2 = w * w, w3 = w2 * w, w4 = w2 * w2;
    a[1] = a[1] * w;
    a[2] = a[2] * w2;
    a[3] = a[3] * w3;
    a[4] = a[4] * w4;
    a[5] = a[5] * (w4 * w);
    a[6] = a[6] * (w4 * w2);
    a[7] = a[7] * (w4 * w3);
}

// Writes a[k] at put + k * put_step, reads it back from get + k * get_step.
__device__ __forceinline__ void exchange(Complex (&a)[RADIX], double* tile, int put, int put_step,
                                         int get, int get_step) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX; ++k) tile[put + k * put_step] = a[k].re;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX; ++k) a[k].re = tile[get + k * get_step];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX; ++k) tile[put + k * put_step] = a[k].im;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX; ++k) a[k].im = tile[get + k * get_step];
}

}  // namespace

// in, out: [batch][512] complex numbers as pairs of doubles
extern "C" __global__ void fft512(const double2* __restrict__ in, double2* __restrict__ out) {
    __shared__ double tile[RADIX * ROW];
    const int t = threadIdx.x, low = t % RADIX, high = t / RADIX;
    const long long first = (long long)blockIdx.x * POINTS;

    Complex a[RADIX];
#pragma unroll
    for (int j = 0; j < RADIX; ++j) {
        double2 x = in[first + t + j * THREADS];
        a[j] = {x.x, x.y};
    }
    butterfly(a);
    twiddle(a, t, 2.0 / 512.0);
    // Row k holds the 64 numbers of frequency k; thread (high = k, low = t) takes every eighth.
    exchange(a, tile, t, ROW, high * ROW + low, RADIX);
    butterfly(a);
    twiddle(a, low, 2.0 / 64.0);
    // Row k keeps its place; thread (low = k, high = k') takes eight neighbours.
    exchange(a, tile, high * ROW + low, RADIX, low * ROW + high * RADIX, 1);
    butterfly(a);
#pragma unroll
    for (int k = 0; k < RADIX; ++k) out[first + t + k * THREADS] = make_double2(a[k].re, a[k].im);
}
