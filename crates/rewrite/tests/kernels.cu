// Kernels and their rewrites, right ones and wrong ones, for the comparison at launches of their own.
#include <math.h>

extern "C" {

// ---- elements beyond the last one that stay as they are

__global__ void doubled(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}

__global__ void wrong_doubled_one_more(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = 2.0f * x[i];
}

// ---- sums of rows

__global__ void sum_serial(const float *x, float *out, int n) {
    int row = blockIdx.x;
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < n; i++) sum += x[row * n + i];
        out[row] = sum;
    }
}

__global__ void sum_tree(const float *x, float *out, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 128) sum += x[row * n + i];
    s[t] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) out[row] = s[0];
}

__global__ void sum_shuffle(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 32) sum += x[row * n + i];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

__global__ void sum_fours(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    const float4 *y = (const float4 *)(x + row * n);
    float sum = 0.0f;
    for (int i = t; i < n / 4; i += 32) {
        float4 v = y[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

__global__ void sum_atomic(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i]);
}

__global__ void sum_all(const float *x, float *out, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += x[i];
    out[0] += sum;
}

__global__ void wrong_sum_no_barrier(const float *x, float *out, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 128) sum += x[row * n + i];
    s[t] = sum;
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) out[row] = s[0];
}

__global__ void wrong_sum_stride(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 33) sum += x[row * n + i];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

__global__ void wrong_sum_lost_step(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 32) sum += x[row * n + i];
    for (int by = 16; by > 1; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

__global__ void wrong_sum_reads_past(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i <= n; i += 32) sum += x[row * n + i] * (i < n ? 1.0f : 0.0f);
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

__global__ void wrong_sum_fast_path(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    if (x[row * n] == 0.25f) {
        if (t == 0) out[row] = 7.0f;
        return;
    }
    for (int i = 0; i < n; i++) sum += x[row * n + i];
    if (t == 0) out[row] = sum;
}

__global__ void wrong_sum_plain_add(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[0] += x[i];
}

__global__ void wrong_sum_half_rows(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 32) sum += x[row * n + i];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0 && row % 2 == 0) out[row] = sum;
}

__global__ void wrong_sum_writes_input(float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 32) {
        sum += x[row * n + i];
        x[row * n + i] = sum;
    }
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

__global__ void wrong_sum_unset(const float *x, float *out, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 32) sum += x[row * n + i];
    s[t] = sum;
    __syncthreads();
    if (t < 32) sum = s[t] + s[t + 32];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (t == 0) out[row] = sum;
}

// ---- maxima

__global__ void max_serial(const float *x, float *out, int n) {
    float m = -INFINITY;
    for (int i = 0; i < n; i++) m = fmaxf(m, x[blockIdx.x * n + i]);
    if (threadIdx.x == 0) out[blockIdx.x] = m;
}

__global__ void max_shuffle(const float *x, float *out, int n) {
    float m = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = x[blockIdx.x * n + i];
        if (v > m) m = v;
    }
    for (int by = 16; by > 0; by /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, by));
    if (threadIdx.x == 0) out[blockIdx.x] = m;
}

__global__ void wrong_max_identity(const float *x, float *out, int n) {
    float m = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[blockIdx.x * n + i]);
    for (int by = 16; by > 0; by /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, by));
    if (threadIdx.x == 0) out[blockIdx.x] = m;
}

// ---- softmax

__global__ void softmax_three(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    if (threadIdx.x != 0) return;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) m = fmaxf(m, r[i]);
    for (int i = 0; i < n; i++) sum += expf(r[i] - m);
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = expf(r[i] - m) / sum;
}

__global__ void softmax_online(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    if (threadIdx.x != 0) return;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float v = r[i];
        if (v > m) {
            sum = sum * expf(m - v) + 1.0f;
            m = v;
        } else {
            sum += expf(v - m);
        }
    }
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = expf(r[i] - m) / sum;
}

__global__ void softmax_warp(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    int t = threadIdx.x;
    float m = -INFINITY, sum = 0.0f;
    for (int i = t; i < n; i += 32) m = fmaxf(m, r[i]);
    for (int by = 16; by > 0; by /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, by));
    for (int i = t; i < n; i += 32) sum += expf(r[i] - m);
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    float scale = 1.0f / sum;
    for (int i = t; i < n; i += 32) out[blockIdx.x * n + i] = expf(r[i] - m) * scale;
}

__global__ void wrong_softmax_rescale(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    if (threadIdx.x != 0) return;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float v = r[i];
        if (v > m) m = v;
        sum += expf(v - m);
    }
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = expf(r[i] - m) / sum;
}

// Lanes without elements merge two maxima that are no numbers yet.
__global__ void wrong_softmax_infinite(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    int t = threadIdx.x;
    float m = -INFINITY, sum = 0.0f;
    for (int i = t; i < n; i += 32) {
        float above = fmaxf(m, r[i]);
        sum = sum * expf(m - above) + expf(r[i] - above);
        m = above;
    }
    for (int by = 16; by > 0; by /= 2) {
        float other = __shfl_xor_sync(0xffffffff, m, by), more = __shfl_xor_sync(0xffffffff, sum, by);
        float above = fmaxf(m, other);
        sum = sum * expf(m - above) + more * expf(other - above);
        m = above;
    }
    for (int i = t; i < n; i += 32) out[blockIdx.x * n + i] = expf(r[i] - m) / sum;
}

// ---- layer norm

__global__ void norm_two_pass(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    if (threadIdx.x != 0) return;
    float mean = 0.0f, var = 0.0f;
    for (int i = 0; i < n; i++) mean += r[i];
    mean /= n;
    for (int i = 0; i < n; i++) var += (r[i] - mean) * (r[i] - mean);
    var /= n;
    float s = rsqrtf(var + 1e-5f);
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = s * (r[i] - mean);
}

__global__ void norm_squares(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    int t = threadIdx.x;
    float a = 0.0f, b = 0.0f;
    for (int i = t; i < n; i += 32) {
        a += r[i];
        b += r[i] * r[i];
    }
    for (int by = 16; by > 0; by /= 2) {
        a += __shfl_xor_sync(0xffffffff, a, by);
        b += __shfl_xor_sync(0xffffffff, b, by);
    }
    float mean = a / n, s = rsqrtf(b / n - mean * mean + 1e-5f);
    for (int i = t; i < n; i += 32) out[blockIdx.x * n + i] = (r[i] - mean) * s;
}

__global__ void wrong_norm_epsilon(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    int t = threadIdx.x;
    float a = 0.0f, b = 0.0f;
    for (int i = t; i < n; i += 32) {
        a += r[i];
        b += r[i] * r[i];
    }
    for (int by = 16; by > 0; by /= 2) {
        a += __shfl_xor_sync(0xffffffff, a, by);
        b += __shfl_xor_sync(0xffffffff, b, by);
    }
    float mean = a / n, s = rsqrtf(b / n - mean * mean + 1e-2f);
    for (int i = t; i < n; i += 32) out[blockIdx.x * n + i] = (r[i] - mean) * s;
}

// ---- products

__global__ void product_naive(const float *a, const float *b, float *c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

__global__ void product_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float s[8][8], u[8][9];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 8 + x, row = blockIdx.y * 8 + y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 8) {
        s[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0.0f;
        u[y][x] = col < n && k + y < n ? b[(k + y) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 8; i++) sum += s[y][i] * u[i][x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

__global__ void wrong_product_barrier(const float *a, const float *b, float *c, int n) {
    __shared__ float s[8][8], u[8][9];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 8 + x, row = blockIdx.y * 8 + y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 8) {
        s[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0.0f;
        u[y][x] = col < n && k + y < n ? b[(k + y) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 8; i++) sum += s[y][i] * u[i][x];
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

__global__ void wrong_product_guard(const float *a, const float *b, float *c, int n) {
    __shared__ float s[8][8], u[8][9];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 8 + x, row = blockIdx.y * 8 + y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 8) {
        s[y][x] = row < n ? a[(row * n + k + x) % (n * n)] : 0.0f;
        u[y][x] = col < n && k + y < n ? b[(k + y) * n + col] : 1.0f;
        __syncthreads();
        for (int i = 0; i < 8; i++) sum += s[y][i] * u[i][x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

// ---- moves

__global__ void transpose_naive(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n) out[i % n * n + i / n] = x[i];
}

__global__ void transpose_tiled(const float *x, float *out, int n) {
    __shared__ float s[16][17];
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < n && col < n) s[threadIdx.y][threadIdx.x] = x[row * n + col];
    __syncthreads();
    col = blockIdx.y * 16 + threadIdx.x;
    row = blockIdx.x * 16 + threadIdx.y;
    if (row < n && col < n) out[row * n + col] = s[threadIdx.x][threadIdx.y];
}

__global__ void wrong_transpose_swapped(const float *x, float *out, int n) {
    __shared__ float s[16][17];
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < n && col < n) s[threadIdx.y][threadIdx.x] = x[row * n + col];
    __syncthreads();
    if (row < n && col < n) out[col * n + row] = s[threadIdx.x][threadIdx.y];
}

// ---- pointwise

__global__ void relu_branch(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] > 0.0f) out[i] = x[i];
    else out[i] = 0.0f;
}

__global__ void relu_select(const float *x, float *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float v = x[i];
        out[i] = v > 0.0f ? v : 0.0f;
    }
}

__global__ void wrong_relu_leaky(const float *x, float *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float v = x[i];
        out[i] = v > 0.0f ? v : 0.01f * v;
    }
}

__global__ void swish_div(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

__global__ void swish_mul(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * (1.0f / (1.0f + expf(-x[i])));
}

// ---- integers and indices

__global__ void histogram_global(const unsigned char *x, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[x[i]], 1);
}

__global__ void histogram_shared(const unsigned char *x, unsigned *out, int n) {
    __shared__ unsigned s[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&s[x[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], s[i]);
}

__global__ void isum_serial(const int *x, int *out, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += x[blockIdx.x * n + i];
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void isum_shuffle(const int *x, int *out, int n) {
    int sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += x[blockIdx.x * n + i];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void wrong_isum_wide(const int *x, int *out, int n) {
    long long sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += x[blockIdx.x * n + i];
    int part = (int)(sum / 2) * 2;
    for (int by = 16; by > 0; by /= 2) part += __shfl_down_sync(0xffffffff, part, by);
    if (threadIdx.x == 0) out[blockIdx.x] = part;
}
}

// ---- the last element alone is skipped: a maximum that is elsewhere does not show it
extern "C" __global__ void wrong_max_skips_last(const float *x, float *out, int n)
{
    int row = blockIdx.x;
    if (threadIdx.x == 0) {
        float m = x[row * n];
        for (int i = 1; i < n - (n > 4); ++i)
            m = fmaxf(m, x[row * n + i]);
        out[row] = m;
    }
}

// ---- constants: the second half of log2(e) is a number by itself, and zeros have signs
extern "C" __global__ void scaled_little(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * 1.925963033500011079e-08f;
}

extern "C" __global__ void little(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.925963033500011079e-08f;
}

extern "C" __global__ void cleared(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.0f;
}

extern "C" __global__ void cleared_from_below(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = -0.0f;
}

// ---- comparisons: none holds of NaN
extern "C" __global__ void below_one(const int *x, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __int_as_float(x[i]) < 1.0f;
}

extern "C" __global__ void not_from_one_on(const int *x, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = !(__int_as_float(x[i]) >= 1.0f);
}

// ---- the larger of two: a maximum, a flag made a number and tested again, a choice between two places
extern "C" __global__ void half_max(const unsigned short *x, const unsigned short *z, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) asm("max.f16 %0, %1, %2;" : "=h"(out[i]) : "h"(x[i]), "h"(z[i]));
}

__device__ bool above(unsigned short x, unsigned short z)
{
    unsigned short flag;
    asm("{.reg .pred p; setp.gt.f16 p, %1, %2; selp.u16 %0, 1, 0, p;}" : "=h"(flag) : "h"(x), "h"(z));
    return flag != 0;
}

extern "C" __global__ void half_larger(const unsigned short *x, const unsigned short *z, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = above(x[i], z[i]) ? x[i] : z[i];
}

extern "C" __global__ void wrong_half_smaller(const unsigned short *x, const unsigned short *z, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = above(x[i], z[i]) ? z[i] : x[i];
}

extern "C" __global__ void float_max(const float *x, const float *z, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(x[i], z[i]);
}

extern "C" __global__ void float_place(const float *x, const float *z, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = *(x[i] > z[i] ? x + i : z + i);
}

extern "C" __global__ void wrong_float_place(const float *x, const float *z, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = *(x[i] > z[i] ? x + i : z + i / 2);
}

// ---- the last block adds what all have left, by a counter of the module
__device__ unsigned arrived = 0;

extern "C" __global__ void sum_last_block(const float *x, float *part, float *out, int n)
{
    __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) {
        float sum = 0.0f;
        for (int i = blockIdx.x * 8; i < n && i < blockIdx.x * 8 + 8; i++) sum += x[i];
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&arrived, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0.0f;
        for (int i = 0; i < gridDim.x; i++) sum += ((volatile float *)part)[i];
        out[0] = sum;
        arrived = 0;
    }
}

// The last block but one goes on.
extern "C" __global__ void wrong_sum_too_early(const float *x, float *part, float *out, int n)
{
    __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) {
        float sum = 0.0f;
        for (int i = blockIdx.x * 8; i < n && i < blockIdx.x * 8 + 8; i++) sum += x[i];
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&arrived, gridDim.x) + 2 == gridDim.x;
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0.0f;
        for (int i = 0; i < gridDim.x; i++) sum += ((volatile float *)part)[i];
        out[0] = sum;
        arrived = 0;
    }
}

extern "C" __global__ void wrong_sum_first_parts(const float *x, float *part, float *out, int n)
{
    if (threadIdx.x) return;
    float sum = 0.0f;
    for (int i = blockIdx.x * 8; i < n && i < blockIdx.x * 8 + 8; i++) sum += x[i];
    part[blockIdx.x] = sum;
    __threadfence();
    if (atomicInc(&arrived, gridDim.x) == gridDim.x - 1) {
        float all = 0.0f;
        for (int i = 0; i + 1 < gridDim.x; i++) all += ((volatile float *)part)[i];
        out[0] = all;
        arrived = 0;
    }
}

// ---- blocks that are alike, and such as are not

// A row for each block, in the place of its number.
#define OF_ROW(NAME, FROM, VALUE)                                                            \
    extern "C" __global__ void NAME(const float *x, const float *w, float *out, int n)       \
    {                                                                                        \
        int row = blockIdx.x, from = FROM;                                                   \
        for (int i = threadIdx.x; i < n; i += blockDim.x) {                                  \
            float v = x[from * n + i] * w[i];                                                \
            out[row * n + i] = VALUE;                                                        \
        }                                                                                    \
    }

OF_ROW(weighted, row, v)
OF_ROW(weighted_by_row, row, v * (float)row)
// The row before, in one block alone.
OF_ROW(wrong_weighted_other_row, row == 5 ? 4 : row, v)
// Another value, in one block alone.
OF_ROW(wrong_weighted_sixth, row, row == 5 ? v + 1.0f : v)
// Another factor, in one block alone.
OF_ROW(wrong_weighted_factor, row, row == 5 ? x[row * n + i] * w[0] : v)

// As many rows for a block as it has threads: others are together than there.
extern "C" __global__ void weighted_rows(const float *x, const float *w, float *out, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < n; i++) out[row * n + i] = w[i] * x[row * n + i];
}

// Every block, but for the last, writes the first element of the next row, too.
extern "C" __global__ void wrong_weighted_next_row(const float *x, const float *w, float *out, int n)
{
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[row * n + i] = x[row * n + i] * w[i];
    if (threadIdx.x == 0 && row + 1 < gridDim.x) out[(row + 1) * n] = 0.0f;
}
