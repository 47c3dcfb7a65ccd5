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

// ---- conditions on data that decide who writes

extern "C" __global__ void sign_marked(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] > 0.0f ? 1.0f : 2.0f;
}

// Two threads for an element, of which one writes.
#define BY_TWO(NAME, FIRST, SECOND)                                                          \
    extern "C" __global__ void NAME(const float *x, float *out, int n)                       \
    {                                                                                        \
        int both = blockIdx.x * blockDim.x + threadIdx.x, i = both / 2;                      \
        if (i >= n) return;                                                                  \
        if (both % 2) {                                                                      \
            if (FIRST) out[i] = 1.0f;                                                        \
        } else {                                                                             \
            if (SECOND) out[i] = 2.0f;                                                       \
        }                                                                                    \
    }

BY_TWO(sign_marked_by_two, x[i] > 0.0f, !(x[i] > 0.0f))
BY_TWO(wrong_sign_marked_by_both, x[i] > 0.0f, x[i] > 0.0f)
BY_TWO(wrong_sign_marked_overlapping, x[i] > 0.0f, !(x[i] > 0.5f))

extern "C" __global__ void largest_from_zero(const float *x, float *out, int n)
{
    float most = 0.0f;
    for (int i = 0; i < n; i++) most = fmaxf(most, x[i]);
    out[0] = most;
}

__device__ float largest_of_block(const float *x, int n)
{
    float most = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) most = fmaxf(most, x[i]);
    for (int by = 16; by; by /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, by));
    return most;
}

// By comparing and swapping the bits, as the programming guide has it.
#define BY_SWAPS(NAME, NEW, AFTER)                                                           \
    extern "C" __global__ void NAME(const float *x, float *out, int n)                       \
    {                                                                                        \
        float most = largest_of_block(x, n);                                                 \
        if (threadIdx.x % 32) return;                                                        \
        int *bits = (int *)out, old = *bits, seen;                                           \
        do {                                                                                 \
            seen = old;                                                                      \
            old = atomicCAS(bits, seen, __float_as_int(NEW));                                \
        } while (old != seen);                                                               \
        AFTER;                                                                               \
    }

BY_SWAPS(largest_by_swaps, fmaxf(most, __int_as_float(seen)), )
BY_SWAPS(wrong_largest_last_wins, most, )
BY_SWAPS(wrong_largest_read_after, fmaxf(most, __int_as_float(seen)), out[0] = ((volatile float *)out)[0] + 0.0f)

// Nothing orders what the others have left before the count.
extern "C" __global__ void wrong_sum_unfenced(const float *x, float *part, float *out, int n)
{
    if (threadIdx.x) return;
    float sum = 0.0f;
    for (int i = blockIdx.x * 8; i < n && i < blockIdx.x * 8 + 8; i++) sum += x[i];
    part[blockIdx.x] = sum;
    if (atomicInc(&arrived, gridDim.x) == gridDim.x - 1) {
        float all = 0.0f;
        for (int i = 0; i < gridDim.x; i++) all += ((volatile float *)part)[i];
        out[0] = all;
        arrived = 0;
    }
}

// ---- one of a few places, chosen by data

// Of four the first of the largest gets what belongs to all of them.
extern "C" __global__ void largest_gathered(const float *x, const float *g, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 4 * n) return;
    const float *four = x + i / 4 * 4;
    float most = four[0], own = i % 4 == 0 ? g[i / 4] : 0.0f;
    for (int k = 1; k < 4; k++)
        if (four[k] > most) {
            most = four[k];
            own = i % 4 == k ? g[i / 4] : 0.0f;
        }
    out[i] = own;
}

#define SCATTERED(NAME, SECOND)                                                              \
    extern "C" __global__ void NAME(const float *x, const float *g, float *out, int n)       \
    {                                                                                        \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
        if (i >= n) return;                                                                  \
        const float *four = x + 4 * i;                                                       \
        float most = four[0];                                                                \
        int best = 0;                                                                        \
        if (four[1] > most) { most = four[1]; best = 1; }                                    \
        if (four[2] > most) { most = four[2]; best = SECOND; }                               \
        if (four[3] > most) { most = four[3]; best = 3; }                                    \
        out[4 * i + best] = g[i];                                                            \
    }

SCATTERED(largest_scattered, 2)
SCATTERED(wrong_largest_scattered, 1)

// ---- sums of selections, maxima with constants, signs and constants

#define GATED(v) (v > 0.25f ? v * v : 0.0f)

extern "C" __global__ void gated_sum(const float *x, float *out, int n)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += GATED(x[blockIdx.x * n + i]);
    out[blockIdx.x] = sum;
}

#define GATED_WARP(NAME, VALUE)                                                              \
    extern "C" __global__ void NAME(const float *x, float *out, int n)                       \
    {                                                                                        \
        float sum = 0.0f;                                                                    \
        for (int i = threadIdx.x; i < n; i += 32) {                                          \
            float v = x[blockIdx.x * n + i];                                                 \
            sum += VALUE;                                                                    \
        }                                                                                    \
        for (int by = 16; by; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);                 \
        if (threadIdx.x == 0) out[blockIdx.x] = sum;                                         \
    }

GATED_WARP(gated_sum_warp, GATED(v))
GATED_WARP(wrong_gated_sum_warp, (v > -0.25f ? v * v : 0.0f))

#define RECTIFIED(NAME, FIRST, VALUE)                                                        \
    extern "C" __global__ void NAME(const float *x, float *out, int n)                       \
    {                                                                                        \
        float most = FIRST;                                                                  \
        for (int i = 0; i < n; i++) most = fmaxf(most, VALUE);                               \
        out[blockIdx.x] = most;                                                              \
    }

RECTIFIED(rectified_max, 0.0f, x[blockIdx.x * n + i])
RECTIFIED(rectified_max_from_below, -1e20f, fmaxf(x[blockIdx.x * n + i], 0.0f))
RECTIFIED(wrong_rectified_max, -1e20f, fmaxf(x[blockIdx.x * n + i], 0.75f))

#define OF_EACH(NAME, VALUE)                                                                 \
    extern "C" __global__ void NAME(const float *x, float *out, int n)                       \
    {                                                                                        \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
        if (i < n) out[i] = VALUE;                                                           \
    }

// Of later threads the inputs are younger than the constants of `expf`.
OF_EACH(swish, x[i] / (1.0f + expf(-x[i])))
OF_EACH(swish_fast, x[i] / (1.0f + __expf(-x[i])))
OF_EACH(wrong_swish_fast, x[i] / (1.0f + __expf(x[i])))
OF_EACH(third_double, (float)(0.33333 * x[i]))
OF_EACH(third_single, 0.33333f * x[i])
OF_EACH(wrong_third, 0.333f * x[i])

// ---- dot products of bytes

extern "C" __global__ void dot_bytes(const signed char *a, const signed char *b, int *out, int n)
{
    int sum = 0;
    for (int i = 0; i < 4 * n; i++) sum += a[i] * b[i];
    out[0] = sum;
}

#define WORDS(NAME, TYPE, ZERO)                                                              \
    extern "C" __global__ void NAME(const signed char *a, const signed char *b, int *out, int n) \
    {                                                                                        \
        TYPE sum = ZERO;                                                                     \
        for (int i = 0; i < n; i++) sum = __dp4a(((const TYPE *)a)[i], ((const TYPE *)b)[i], sum); \
        out[0] = (int)sum;                                                                   \
    }

WORDS(dot_words, int, 0)
WORDS(wrong_dot_words, unsigned, 0u)

// ---- in place: what moves is written

extern "C" __global__ void turned(float *x, int n)
{
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
        const float first = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = first;
    }
}

#define STAGED(NAME, FROM)                                          \
    extern "C" __global__ void NAME(float *x, int n)                \
    {                                                               \
        __shared__ float part[256];                                 \
        for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = x[i]; \
        __syncthreads();                                            \
        for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = part[FROM]; \
    }

STAGED(turned_staged, n - 1 - i)
STAGED(wrong_turned_staged, i)
