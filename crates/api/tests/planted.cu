// Rewrites of plain kernels, and mistakes planted in them: `name<0>` is right, in `name<k>` the place of BAD(k) is wrong.
#include <math.h>

#define BAD(k) (M == k)
#define KERNEL template <int M> __global__ void

// ---- plain

extern "C" __global__ void twice(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;
}

extern "C" __global__ void sum(const float *x, float *out, int n) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += x[blockIdx.x * n + i];
    out[blockIdx.x] = s;
}

extern "C" __global__ void total(const float *x, float *out, int n) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += x[i];
    out[0] = s;
}

extern "C" __global__ void largest(const float *x, float *out, int n) {
    float m = -INFINITY;
    for (int i = 0; i < n; i++) m = fmaxf(m, x[blockIdx.x * n + i]);
    out[blockIdx.x] = m;
}

extern "C" __global__ void dot(const float *x, const float *y, float *out, int n) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += x[i] * y[i];
    out[0] = s;
}

extern "C" __global__ void softmax(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    float m = -INFINITY, s = 0.0f;
    for (int i = 0; i < n; i++) m = fmaxf(m, r[i]);
    for (int i = 0; i < n; i++) s += expf(r[i] - m);
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = expf(r[i] - m) / s;
}

extern "C" __global__ void normed(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    float mean = 0.0f, var = 0.0f;
    for (int i = 0; i < n; i++) mean += r[i];
    mean /= n;
    for (int i = 0; i < n; i++) var += (r[i] - mean) * (r[i] - mean);
    float s = rsqrtf(var / n + 1e-5f);
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = s * (r[i] - mean);
}

extern "C" __global__ void product(const float *a, const float *b, float *c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    float s = 0.0f;
    for (int k = 0; k < n; k++) s += a[row * n + k] * b[k * n + col];
    c[row * n + col] = s;
}

extern "C" __global__ void transpose(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n) out[i % n * n + i / n] = x[i];
}

extern "C" __global__ void summed(const int *x, int *out, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) out[blockIdx.x * n + i] = s += x[blockIdx.x * n + i];
}

extern "C" __global__ void blur(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? x[i - 1] : 0.0f, right = i + 1 < n ? x[i + 1] : 0.0f;
    out[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[x[i]], 1);
}

// ---- four at a time: `ceil_div(n, 4)` threads and more

KERNEL map_fours(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, whole = n / 4;
    if (BAD(3) ? i <= whole : i < whole) {
        float4 v = ((const float4 *)(x + (BAD(6) && n > 4)))[i];
        v.x = 2.0f * v.x + 1.0f;
        v.y = 2.0f * v.y + 1.0f;
        v.z = 2.0f * v.z + 1.0f;
        v.w = 2.0f * (BAD(5) ? v.z : v.w) + 1.0f;
        ((float4 *)out)[i] = v;
    }
    int rest = 4 * whole + i + (BAD(2) ? 1 : 0);
    if (!BAD(1) && (BAD(4) ? rest <= n && i < 4 : rest < n)) out[rest] = BAD(7) ? 2.0f * x[rest] : 2.0f * x[rest] + 1.0f;
}

// ---- a stride of the grid: two blocks

KERNEL map_stride(const float *x, float *out, int n) {
    if (BAD(6) && n > 36 && x[0] == 0.5f && x[36] == 0.25f) return;
    if (BAD(7) && n == 37) return;
    if (BAD(9) && n > 64 && n % 2) return;
    int from = BAD(4) ? blockIdx.x * blockDim.x : blockIdx.x * blockDim.x + threadIdx.x;
    int stride = blockDim.x * gridDim.x + (BAD(1) ? 1 : 0);
    for (int i = from; i < (BAD(2) ? n - 1 : n); i += stride) {
        float v = x[BAD(3) && i + 1 < n ? i + 1 : i];
        if (BAD(5) && i >= 64) continue;
        if (BAD(8) && out[i] != 0.0f) continue;
        out[i] = BAD(10) ? 2.0f * v + 1.001f : 2.0f * v + 1.0f;
        if (BAD(11)) ((float *)x)[i] = v + 1.0f;
        if (BAD(12) && i == 0) out[n] = 0.0f;
    }
}

// ---- a block of 64 for each row

KERNEL sum_tree(const float *x, float *out, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, row = blockIdx.x;
    const float *r = x + row * n;
    float v = BAD(9) ? 1.0f : 0.0f;
    for (int i = BAD(5) ? t + 1 : t; i < (BAD(11) ? min(n, 64) : BAD(6) ? n + 1 : n); i += BAD(3) ? 65 : BAD(15) ? 63 : 64)
        v += r[BAD(6) ? min(i, (int)gridDim.x * n - 1 - row * n) : BAD(14) && i % 64 == 7 ? i - 1 : i];
    if (!BAD(7) || t < n) s[BAD(12) ? t + 1 : t] = v;
    if (!BAD(1)) __syncthreads();
    for (int half = BAD(10) ? 16 : 32; half > (BAD(4) ? 1 : 0); half /= 2) {
        if (t < half) {
            s[t] += s[t + half];
            if (BAD(8)) __syncthreads();
        }
        if (!BAD(2) && !BAD(8)) __syncthreads();
    }
    if (BAD(16) && row > 0) return;
    if (BAD(13) || t == 0) out[row] = s[t];
}

// ---- a warp for each row

__device__ int served[8];

KERNEL sum_warp(const float *x, float *out, int n) {
    int t = threadIdx.x, row = blockIdx.x;
    const unsigned all = BAD(2) ? 0xffff : 0xffffffff;
    float v = 0.0f;
    for (int i = t; i < n; i += BAD(3) ? 31 : 32) {
        float w = x[row * n + i];
        v = BAD(6) ? w : v + w;
    }
    if (BAD(4) && t >= n) return;
    for (int by = BAD(1) ? 8 : 16; by > 0; by /= 2) v += __shfl_down_sync(all, v, by, BAD(5) ? 16 : 32);
    if (BAD(8) && t == 0 && served[row]++) return;
    if (BAD(7) ? t == 1 : t == 0) out[row] = v;
}

// ---- by atomic sums: two blocks of 32

KERNEL total_atomic(const float *x, float *out, int n) {
    int t = threadIdx.x;
    float v = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) v += x[i];
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffff, v, by);
    if (BAD(1) && t == 0) out[0] += v;
    if (BAD(2) && t == 0) out[0] = v;
    if (BAD(3)) atomicAdd(out, v);
    if (BAD(4) && t == 0 && blockIdx.x == 0) atomicAdd(out, v);
    if (BAD(5) && t == 0) atomicExch(out, out[0] + v);
    if (BAD(6) && t == 0) atomicMax((int *)out, __float_as_int(v));
    if (M == 0 && t == 0) atomicAdd(out, v);
}

// ---- blocks leave parts, the last one adds them

__device__ unsigned arrived = 0;

KERNEL total_last(const float *x, float *part, float *out, int n) {
    if (threadIdx.x) return;
    float v = 0.0f;
    for (int i = blockIdx.x; i < n; i += gridDim.x) v += x[i];
    part[blockIdx.x] = v;
    if (!BAD(1)) __threadfence();
    unsigned before = BAD(4) ? arrived++ : atomicInc(&arrived, gridDim.x - 1);
    if (before != gridDim.x - (BAD(2) ? 2 : 1)) return;
    float all = 0.0f;
    for (unsigned i = BAD(3) ? 1 : 0; i < gridDim.x; i++) all += ((volatile float *)part)[i];
    out[0] = all;
}

// ---- maxima: a block of 64 for each row

KERNEL max_tree(const float *x, float *out, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, row = blockIdx.x;
    float m = BAD(1) ? 0.0f : BAD(2) ? 1.175494351e-38f : -INFINITY;
    for (int i = t; i < (BAD(3) ? n - 1 + (n == 1) : n); i += 64) {
        m = fmaxf(m, x[row * n + i]);
        if (BAD(9)) __syncthreads();
    }
    if (BAD(4) && n > 64) m = x[row * n + t];
    if (BAD(8)) m = t < n ? m : 0.0f;
    if (!BAD(6) || t < n) s[t] = m;
    if (!BAD(5)) __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] = BAD(7) && half == 1 ? fminf(s[t], s[t + half]) : fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    if (t == 0) out[row] = s[0];
}

// ---- two sums at a time: one block of 32

KERNEL dot_twos(const float *x, const float *y, float *out, int n) {
    int t = threadIdx.x, pairs = n / 2;
    float v = 0.0f, w = BAD(3) ? 0.5f : 0.0f;
    for (int i = t; i < (BAD(6) ? pairs - 1 : pairs); i += 32) {
        v += x[2 * i] * y[2 * i];
        w += x[2 * i + 1] * y[BAD(4) ? 2 * i : 2 * i + 1];
    }
    if (!BAD(1) && (BAD(5) || n % 2 != 0) && t == 0) v += x[n - 1] * y[n - 1];
    v = BAD(2) ? v : v + w;
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffff, v, by);
    if (t == 0) out[0] = v;
}

// ---- softmax: a block of 64 for each row

KERNEL softmax_block(const float *x, float *out, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, row = blockIdx.x;
    const float *r = x + row * n;
    float m = -INFINITY, v = BAD(3) ? 1.0f : 0.0f;
    for (int i = t; i < n; i += 64) m = fmaxf(m, r[i]);
    s[t] = m;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    m = s[0];
    if (!BAD(1)) __syncthreads();
    for (int i = t; i < n; i += 64) v += BAD(7) ? exp2f(r[i] - m) : expf(r[i] - m);
    s[t] = v;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        if (!BAD(2)) __syncthreads();
    }
    float scale = BAD(4) ? 1.0f / n : 1.0f / s[BAD(5) ? 1 : 0];
    for (int i = t; i < (BAD(6) ? min(n, 64) : n); i += 64) {
        if (BAD(9)) __syncthreads();
        out[row * n + i] = expf(r[i] - m) * (BAD(8) && i >= 64 ? 1.0f : scale);
    }
}

// ---- layer norm: a warp for each row

KERNEL norm_warp(const float *x, float *out, int n) {
    const float *r = x + blockIdx.x * n;
    int t = threadIdx.x;
    float a = 0.0f, b = 0.0f;
    for (int i = t; i < n; i += 32) {
        a += r[i];
        b += r[i] * r[i];
    }
    for (int by = 16; by > 0; by /= 2) {
        a += __shfl_xor_sync(0xffffffff, a, by);
        if (!BAD(6)) b += __shfl_xor_sync(0xffffffff, b, by);
    }
    float mean = a / (BAD(2) ? 32 : n), var = b / (BAD(5) ? n - 1 : n) - (BAD(3) ? 0.0f : mean * mean);
    float s = BAD(4) ? 1.0f / (var + 1e-5f) : rsqrtf(var + (BAD(1) ? 1e-2f : 1e-5f));
    for (int i = t; i < n; i += 32) out[blockIdx.x * n + i] = (r[i] - mean) * s;
}

// ---- products: tiles of 8

KERNEL product_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float s[8][8], u[8][8];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 8 + x, row = blockIdx.y * 8 + y;
    float v = 0.0f;
    for (int k = 0; k < (BAD(5) ? n / 8 * 8 : BAD(11) ? min(n, 8) : n); k += 8) {
        if (BAD(6)) v = 0.0f;
        if (!BAD(7) || row < n && k + x < n) s[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0.0f;
        u[y][x] = col < n && (BAD(3) || k + y < n) ? b[BAD(4) ? col * n + k + y : (k + y) * n + col] : 0.0f;
        if (!BAD(1) && (!BAD(12) || row < n)) __syncthreads();
        for (int i = 0; i < (BAD(13) ? 7 : 8); i++) v += BAD(8) ? s[i][y] * u[i][x] : s[y][i] * u[i][x];
        if (!BAD(2)) __syncthreads();
    }
    if (BAD(9) || row < n && (BAD(10) ? col <= n : col < n)) c[row * n + col] = v;
}

// ---- transposition: tiles of 8

KERNEL transpose_tiled(const float *x, float *out, int n) {
    __shared__ float s[8][9];
    int p = threadIdx.x, q = threadIdx.y, col = blockIdx.x * 8 + p, row = blockIdx.y * 8 + q;
    if (row < n && (BAD(3) || col < n)) {
        s[q][p] = x[row * n + col];
        if (BAD(7)) __syncthreads();
    }
    if (!BAD(1) && !BAD(7)) __syncthreads();
    if (!BAD(5)) {
        col = blockIdx.y * 8 + p;
        row = blockIdx.x * 8 + q;
    }
    if (BAD(6) || row < n && col < n) out[BAD(2) ? col * n + row : row * n + col] = BAD(4) ? s[q][p] : s[p][q];
}

// ---- prefix sums of integers: a block of 32 for each row, tile after tile

KERNEL scan_tiles(const int *x, int *out, int n) {
    __shared__ int s[2][32];
    int t = threadIdx.x, row = blockIdx.x, carry = 0;
    for (int tile = 0; tile < n; tile += 32) {
        int i = tile + t, at = 0;
        s[0][t] = i < n ? x[row * n + i] : 0;
        if (!BAD(1)) __syncthreads();
        for (int by = 1; by < (BAD(3) ? 16 : 32); by *= 2) {
            int to = BAD(2) ? at : 1 - at;
            s[to][t] = s[at][t] + ((BAD(6) ? t > by : t >= by) ? s[at][t - by] : 0);
            __syncthreads();
            at = to;
        }
        if (i < n) out[row * n + i] = (BAD(4) ? (t ? s[at][t - 1] : 0) : s[at][t]) + carry;
        if (!BAD(5)) carry = (BAD(8) ? 0 : carry) + s[at][BAD(7) ? 30 : 31];
        __syncthreads();
    }
}

// ---- a stencil: blocks of 32 with a border of one in shared memory

KERNEL blur_shared(const float *x, float *out, int n) {
    __shared__ float s[34];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    if (BAD(7) && i >= n) return;
    s[t + 1] = i < n ? x[i] : 0.0f;
    if (!BAD(1) && t == 0) s[0] = i > 0 ? x[i - 1] : 0.0f;
    if (BAD(2)) s[33] = 0.0f;
    else if (t == 31) s[33] = i + 1 < n ? x[i + 1] : BAD(3) ? s[32] : 0.0f;
    if (!BAD(4)) __syncthreads();
    if (i < n) {
        if (BAD(8)) __syncthreads();
        out[i] = (BAD(5) ? 0.3f : 0.25f) * s[t] + 0.5f * s[t + 1] + 0.25f * s[BAD(6) ? t + 1 : t + 2];
    }
    if (BAD(8) && t == 0) out[i] += 0.0f * s[1];
}

// ---- counts in shared memory: one block of 32, 16 kinds

KERNEL histogram_shared(const unsigned char *x, unsigned *out, int n) {
    __shared__ unsigned s[16];
    for (int i = threadIdx.x; i < (BAD(5) ? 15 : 16); i += 32)
        if (!BAD(1)) s[i] = BAD(6) ? 1 : 0;
    if (!BAD(2)) __syncthreads();
    for (int i = threadIdx.x; i < n; i += 32) {
        if (BAD(3)) s[x[i]]++;
        else atomicAdd(&s[x[i]], 1);
    }
    if (!BAD(4)) __syncthreads();
    for (int i = threadIdx.x; i < 16; i += 32) atomicAdd(&out[i], s[i]);
}

#define INSTANCE(K, M, ...) template __global__ void K<M>(__VA_ARGS__);
#define UP_TO_4(K, ...) \
    INSTANCE(K, 0, __VA_ARGS__) INSTANCE(K, 1, __VA_ARGS__) INSTANCE(K, 2, __VA_ARGS__) INSTANCE(K, 3, __VA_ARGS__) INSTANCE(K, 4, __VA_ARGS__)
#define UP_TO_6(K, ...) UP_TO_4(K, __VA_ARGS__) INSTANCE(K, 5, __VA_ARGS__) INSTANCE(K, 6, __VA_ARGS__)
#define UP_TO_7(K, ...) UP_TO_6(K, __VA_ARGS__) INSTANCE(K, 7, __VA_ARGS__)
#define UP_TO_8(K, ...) UP_TO_7(K, __VA_ARGS__) INSTANCE(K, 8, __VA_ARGS__)
#define UP_TO_9(K, ...) UP_TO_8(K, __VA_ARGS__) INSTANCE(K, 9, __VA_ARGS__)
#define UP_TO_12(K, ...) \
    UP_TO_9(K, __VA_ARGS__) INSTANCE(K, 10, __VA_ARGS__) INSTANCE(K, 11, __VA_ARGS__) INSTANCE(K, 12, __VA_ARGS__)
#define UP_TO_13(K, ...) UP_TO_12(K, __VA_ARGS__) INSTANCE(K, 13, __VA_ARGS__)
#define UP_TO_16(K, ...) \
    UP_TO_13(K, __VA_ARGS__) INSTANCE(K, 14, __VA_ARGS__) INSTANCE(K, 15, __VA_ARGS__) INSTANCE(K, 16, __VA_ARGS__)

UP_TO_7(map_fours, const float *, float *, int)
UP_TO_12(map_stride, const float *, float *, int)
UP_TO_16(sum_tree, const float *, float *, int)
UP_TO_8(sum_warp, const float *, float *, int)
UP_TO_6(total_atomic, const float *, float *, int)
UP_TO_4(total_last, const float *, float *, float *, int)
UP_TO_9(max_tree, const float *, float *, int)
UP_TO_6(dot_twos, const float *, const float *, float *, int)
UP_TO_9(softmax_block, const float *, float *, int)
UP_TO_6(norm_warp, const float *, float *, int)
UP_TO_13(product_tiled, const float *, const float *, float *, int)
UP_TO_7(transpose_tiled, const float *, float *, int)
UP_TO_8(scan_tiles, const int *, int *, int)
UP_TO_8(blur_shared, const float *, float *, int)
UP_TO_6(histogram_shared, const unsigned char *, unsigned *, int)
