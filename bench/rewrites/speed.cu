// Kernels that bench/rewrites_speed.py times the comparison with: one for each compilation, by its name in capitals.
#include <math.h>
#define KERNEL extern "C" __global__ void k

#ifdef SOFTMAX_PLAIN
KERNEL(const float *x, float *y, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += row * n;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) m = fmaxf(m, x[i]);
    for (int i = 0; i < n; i++) sum += expf(x[i] - m);
    for (int i = 0; i < n; i++) y[row * n + i] = expf(x[i] - m) / sum;
}
#endif

#ifdef SOFTMAX_BLOCK
KERNEL(const float *x, float *y, int rows, int n) {
    __shared__ float s[128];
    int row = blockIdx.x, t = threadIdx.x;
    x += row * n;
    float m = -INFINITY;
    for (int i = t; i < n; i += 128) m = fmaxf(m, x[i]);
    s[t] = m; __syncthreads();
    for (int d = 64; d; d /= 2) { if (t < d) s[t] = fmaxf(s[t], s[t + d]); __syncthreads(); }
    m = s[0]; __syncthreads();
    float sum = 0;
    for (int i = t; i < n; i += 128) sum += expf(x[i] - m);
    s[t] = sum; __syncthreads();
    for (int d = 64; d; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    sum = s[0];
    for (int i = t; i < n; i += 128) y[row * n + i] = expf(x[i] - m) / sum;
}
#endif

#ifdef LAYERNORM_PLAIN
KERNEL(float *out, float *mean, float *rstd, const float *inp, const float *weight, const float *bias, int N, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= N) return;
    const float *x = inp + idx * C;
    float m = 0.0f;
    for (int i = 0; i < C; i++) m += x[i];
    m = m / C;
    float v = 0.0f;
    for (int i = 0; i < C; i++) { float s = x[i] - m; v += s * s; }
    v = v / C;
    float s = 1.0f / sqrtf(v + 1e-5f);
    for (int i = 0; i < C; i++) out[idx * C + i] = s * (x[i] - m) * weight[i] + bias[i];
    mean[idx] = m; rstd[idx] = s;
}
#endif

#ifdef LAYERNORM_WARP
KERNEL(float *out, float *mean, float *rstd, const float *inp, const float *weight, const float *bias, int N, int C) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const float *x = inp + row * C;
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32) sum += x[i];
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    float m = sum / C;
    sum = 0.0f;
    for (int i = lane; i < C; i += 32) { float d = x[i] - m; sum += d * d; }
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    float s = rsqrtf(sum / C + 1e-5f);
    if (lane == 0) { mean[row] = m; rstd[row] = s; }
    for (int i = lane; i < C; i += 32) out[row * C + i] = s * (x[i] - m) * weight[i] + bias[i];
}
#endif

#ifdef PRODUCT_PLAIN
KERNEL(const float *A, const float *B, float *C, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    float sum = 0.0f;
    for (int j = 0; j < k; j++) sum += A[i / n * k + j] * B[j * n + i % n];
    C[i] = sum;
}
#endif

#ifdef PRODUCT_TILED
KERNEL(const float *A, const float *B, float *C, int n, int k) {
    __shared__ float a[16][16], b[16][17];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int i = 0; i < k; i += 16) {
        a[y][x] = A[row * k + i + x];
        b[y][x] = B[(i + y) * n + col];
        __syncthreads();
        for (int j = 0; j < 16; j++) sum += a[y][j] * b[j][x];
        __syncthreads();
    }
    C[row * n + col] = sum;
}
#endif
