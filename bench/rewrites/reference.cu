// The plain kernels that rewrites.py holds other people's optimised versions against: one output element per thread.
#include <math.h>

extern "C" {
__global__ void scaled(const float *input, float *output, float scalar, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i] * scalar;
}
__global__ void diagonal(const float *A, const float *B, float *C, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * m) C[i] = A[i / m] * B[i];
}
__global__ void product(const float *A, const float *B, float *C, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = 0.0f;
    for (int j = 0; j < k; j++) sum += A[i / n * k + j] * B[j * n + i % n];
    C[i] = sum;
}
__global__ void lower_product(const float *A, const float *B, float *C, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n, col = i % n;
    if (i >= n * n) return;
    float sum = 0.0f;
    for (int j = col; j <= row; j++) sum += A[row * n + j] * B[j * n + col];
    C[i] = sum;
}
__global__ void relu(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = fmaxf(input[i], 0.0f);
}
__global__ void swish(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i] / (1.0f + expf(-input[i]));
}
__global__ void gelu(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = input[i];
    output[i] = 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}
__global__ void selu(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = input[i];
    output[i] = 1.0507009873554804934193349852946f * (x > 0 ? x : 1.6732632423543772848170429916717f * (expf(x) - 1.0f));
}
__global__ void hardsigmoid(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = fminf(fmaxf((input[i] + 3.0f) / 6.0f, 0.0f), 1.0f);
}
__global__ void hardtanh(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = fminf(fmaxf(data[i], -1.0f), 1.0f);
}
__global__ void softmax(const float *input, float *output, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *x = input + row * n;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) m = fmaxf(m, x[i]);
    for (int i = 0; i < n; i++) sum += expf(x[i] - m);
    for (int i = 0; i < n; i++) output[row * n + i] = expf(x[i] - m) / sum;
}
__global__ void log_softmax(const float *input, float *output, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *x = input + row * n;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) m = fmaxf(m, x[i]);
    for (int i = 0; i < n; i++) sum += expf(x[i] - m);
    for (int i = 0; i < n; i++) output[row * n + i] = x[i] - m - logf(sum);
}
// The middle dimension of a (outer, n, inner) array.
__global__ void sum_middle(const float *input, float *output, int outer, int n, int inner) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    float sum = 0.0f;
    for (int j = 0; j < n; j++) sum += input[(i / inner * n + j) * inner + i % inner];
    output[i] = sum;
}
__global__ void mean_middle(const float *input, float *output, int outer, int n, int inner) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    float sum = 0.0f;
    for (int j = 0; j < n; j++) sum += input[(i / inner * n + j) * inner + i % inner];
    output[i] = sum / n;
}
__global__ void max_middle(const float *input, float *output, int outer, int n, int inner) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    float m = -INFINITY;
    for (int j = 0; j < n; j++) m = fmaxf(m, input[(i / inner * n + j) * inner + i % inner]);
    output[i] = m;
}
__global__ void product_middle(const float *input, float *output, int outer, int n, int inner) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    float p = 1.0f;
    for (int j = 0; j < n; j++) p *= input[(i / inner * n + j) * inner + i % inner];
    output[i] = p;
}
__global__ void running_sum(const float *input, float *output, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) output[row * n + i] = sum += input[row * n + i];
}
__global__ void pool1(const float *input, float *output, int rows, int n, int outs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * outs) return;
    float m = -INFINITY;
    for (int k = 0; k < 4; k++) {
        int at = i % outs * 2 - 2 + 3 * k;
        if (at >= 0 && at < n) m = fmaxf(m, input[i / outs * n + at]);
    }
    output[i] = m;
}
__global__ void pool2(const float *input, float *output, int planes, int h, int w, int oh, int ow) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * oh * ow) return;
    int plane = i / (oh * ow), y = i / ow % oh * 2 - 1, x = i % ow * 2 - 1;
    float m = -INFINITY;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            int a = y + 3 * dy, b = x + 3 * dx;
            if (a >= 0 && a < h && b >= 0 && b < w) m = fmaxf(m, input[(plane * h + a) * w + b]);
        }
    output[i] = m;
}
__global__ void transposed(const float *idata, float *odata, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) odata[i % width * height + i / width] = idata[i];
}
__global__ void copied(const float *idata, float *odata, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) odata[i] = idata[i];
}
__global__ void reversed_sum(const float *input, float *output, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = n - 1; i >= 0; i--) output[row * n + i] = sum += input[row * n + i];
}
// By the root of the mean of squares over the middle dimension.
__global__ void rms_middle(const float *input, float *output, int outer, int n, int inner, float eps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    const float *x = input + i / inner * n * inner + i % inner;
    float *y = output + i / inner * n * inner + i % inner;
    float squares = 0.0f;
    for (int j = 0; j < n; j++) squares += x[j * inner] * x[j * inner];
    for (int j = 0; j < n; j++) y[j * inner] = x[j * inner] / sqrtf(squares / n + eps);
}
__global__ void huber(const float *predictions, const float *targets, float *result, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float d = predictions[i] - targets[i], a = fabsf(d);
        sum += a < 1.0f ? 0.5f * d * d : a - 0.5f;
    }
    *result = sum;
}
__global__ void triplet(const float *anchor, const float *positive, const float *negative, float *output, float margin,
                        int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float p = 0.0f, q = 0.0f;
    for (int i = row * n; i < row * n + n; i++) {
        p += (anchor[i] - positive[i]) * (anchor[i] - positive[i]);
        q += (anchor[i] - negative[i]) * (anchor[i] - negative[i]);
    }
    output[row] = fmaxf(sqrtf(p) - sqrtf(q) + margin, 0.0f);
}
__global__ void dots(const float *a, const float *b, float *c, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += a[row * n + i] * b[row * n + i];
    c[row] = sum;
}
// Sums of so many elements each; of all in the place of the first, if there are several and it is asked for.
__global__ void part_sums(const float *g_idata, float *g_odata, int parts, int per, int n, int all) {
    int part = blockIdx.x * blockDim.x + threadIdx.x;
    if (part >= parts) return;
    bool total = all && part == 0;
    float sum = 0.0f;
    for (int i = part * per; i < n && (total || i < part * per + per); i++) sum += g_idata[i];
    g_odata[part] = sum;
}
// A step of a seven-point stencil, with what stands beyond the edges as it is at them.
__global__ void heat(const float *p, const float *in, float *out, float sdc, int nx, int ny, int nz, float ce, float cw,
                     float cn, float cs, float ct, float cb, float cc) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx * ny * nz) return;
    int x = i % nx, y = i / nx % ny, z = i / (nx * ny);
    float sum = cc * in[i];
    sum += cw * in[x > 0 ? i - 1 : i] + ce * in[x < nx - 1 ? i + 1 : i];
    sum += cn * in[y > 0 ? i - nx : i] + cs * in[y < ny - 1 ? i + nx : i];
    sum += cb * in[z > 0 ? i - nx * ny : i] + ct * in[z < nz - 1 ? i + nx * ny : i];
    out[i] = sum + sdc * p[i] + ct * 80.0f;
}
// A step of the elimination: the factors, then the rows below.
__global__ void factors(float *m, const float *a, int n, int t) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && row > t) m[row * n + t] = a[row * n + t] / a[t * n + t];
}
__global__ void eliminated(const float *m, float *a, float *b, int n, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n, col = i % n;
    if (i >= n * n || row <= t) return;
    if (col >= t) a[i] = a[i] - m[row * n + t] * a[t * n + col];
    if (col == t) b[row] = b[row] - m[row * n + t] * b[t];
}
__global__ void distances(const float *at, float *out, int n, float lat, float lng) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = at[2 * i] - lat, x = at[2 * i + 1] - lng;
    out[i] = sqrtf(y * y + x * x);
}
__global__ void layer_norm(const float *x, const float *w, const float *b, float *y, float eps, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += row * n;
    float mean = 0.0f, square = 0.0f;
    for (int i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
    for (int i = 0; i < n; i++) y[row * n + i] = (x[i] - mean) / sqrtf(square / n + eps) * w[i] + b[i];
}
// One thread: the derivatives by all rows' elements, and by what they are scaled with and shifted by.
__global__ void layer_norm_backward(const float *g, const float *x, const float *w, const float *mean, const float *rstd, float *gx,
                                    float *gw, float *gb, int rows, int n) {
    for (int i = 0; i < n; i++) gw[i] = gb[i] = 0.0f;
    for (int row = 0; row < rows; row++) {
        float all = 0.0f, along = 0.0f;
        for (int i = 0; i < n; i++) {
            float scaled = g[row * n + i] * w[i], centred = (x[row * n + i] - mean[row]) * rstd[row];
            all += scaled;
            along += scaled * centred;
            gw[i] += g[row * n + i] * centred;
            gb[i] += g[row * n + i];
        }
        for (int i = 0; i < n; i++) {
            float scaled = g[row * n + i] * w[i], centred = (x[row * n + i] - mean[row]) * rstd[row];
            gx[row * n + i] = rstd[row] * (scaled - all / n - centred * along / n);
        }
    }
}
__global__ void rms_rows(const float *x, const float *w, float eps, float *y, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float squares = 0.0f;
    for (int i = 0; i < n; i++) squares += x[row * n + i] * x[row * n + i];
    for (int i = 0; i < n; i++) y[row * n + i] = x[row * n + i] / sqrtf(squares / n + eps) * w[i];
}
__global__ void silu_mul(const float *gate, const float *up, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}
__global__ void linear_relu(const float *x, const float *w, const float *bias, float *y, int rows, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out) return;
    float sum = bias[i % out];
    for (int k = 0; k < in; k++) sum += x[i / out * in + k] * w[i % out * in + k];
    y[i] = fmaxf(sum, 0.0f);
}
// What a rectified linear layer lets through of a derivative, and its sum over the rows.
__global__ void masked_bias(const float *x, const float *w, const float *bias, const float *g, float *masked, float *sums, int rows,
                            int in, int out) {
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= out) return;
    float total = 0.0f;
    for (int row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (int k = 0; k < in; k++) sum += x[row * in + k] * w[o * in + k];
        float passed = sum + bias[o] > 0.0f ? g[row * out + o] : 0.0f;
        masked[row * out + o] = passed;
        total += passed;
    }
    sums[o] = total;
}
// The mean of cross entropies without its division, and its derivative.
__global__ void ce_loss(const float *x, const long long *targets, float *loss, int rows, int n) {
    float total = 0.0f;
    for (int row = 0; row < rows; row++) {
        float m = -INFINITY, sum = 0.0f;
        for (int i = 0; i < n; i++) m = fmaxf(m, x[row * n + i]);
        for (int i = 0; i < n; i++) sum += expf(x[row * n + i] - m);
        total -= x[row * n + targets[row]] - m - logf(sum);
    }
    *loss = total;
}
__global__ void ce_backward(float scale, const float *x, const long long *targets, float *dx, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) m = fmaxf(m, x[row * n + i]);
    for (int i = 0; i < n; i++) sum += expf(x[row * n + i] - m);
    for (int i = 0; i < n; i++)
        dx[row * n + i] = (expf(x[row * n + i] - m) / sum - (i == (int)targets[row] ? 1.0f : 0.0f)) * scale / rows;
}
// The derivative of a maximum of two by two: the first of the largest has it.
__global__ void pool_backward(const float *x, const float *g, float *gx, int planes, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * h * w) return;
    int plane = i / (h * w), row = i / w % h, column = i % w, y = row / 2, z = column / 2;
    const float *corner = x + (plane * h + 2 * y) * w + 2 * z;
    int place = row % 2 * 2 + column % 2;
    float most = corner[0], whole = g[(plane * (h / 2) + y) * (w / 2) + z], own = place == 0 ? whole : 0.0f;
    for (int k = 1; k < 4; k++)
        if (corner[k / 2 * w + k % 2] > most) {
            most = corner[k / 2 * w + k % 2];
            own = place == k ? whole : 0.0f;
        }
    gx[i] = own;
}
__global__ void conv_relu_pool(const float *x, const float *k, const float *bias, float *y, int n, int ci, int co, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, oh = (h - 2) / 2, ow = (w - 2) / 2;
    if (i >= n * co * oh * ow) return;
    int image = i / (co * oh * ow), channel = i / (oh * ow) % co, row = i / ow % oh, column = i % ow;
    float best = 0.0f;
    for (int corner = 0; corner < 4; corner++) {
        int top = 2 * row + corner / 2, left = 2 * column + corner % 2;
        float sum = bias[channel];
        for (int c = 0; c < ci; c++)
            for (int t = 0; t < 9; t++) sum += x[((image * ci + c) * h + top + t / 3) * w + left + t % 3] * k[(channel * ci + c) * 9 + t];
        best = fmaxf(best, sum);
    }
    y[i] = best;
}
__global__ void row_sums(const float *g_idata, float *g_odata, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += g_idata[row * n + i];
    g_odata[row] = sum;
}
__global__ void row_sums_int(const int *g_idata, int *g_odata, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int sum = 0;
    for (int i = 0; i < n; i++) sum += g_idata[row * n + i];
    g_odata[row] = sum;
}
__global__ void row_sums_double(const double *g_idata, double *g_odata, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += g_idata[row * n + i];
    g_odata[row] = sum;
}
}
