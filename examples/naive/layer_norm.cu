// Every row less its mean, over its deviation, with a scale and a shift for each column: a thread takes one
// row.

#pragma warpwright naive sizes(m=8192, n=2048) outputs(y) reassociate
extern "C" __global__ void layer_norm(const float *x, const float *scale, const float *shift, float *y, int m, int n,
                                      float epsilon) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= m) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[idx * n + i];
    float mean = sum / n;
    float squares = 0;
    for (int i = 0; i < n; i++) {
        float d = x[idx * n + i] - mean;
        squares += d * d;
    }
    float inverse = 1.0f / sqrtf(squares / n + epsilon);
    for (int i = 0; i < n; i++) y[idx * n + i] = (x[idx * n + i] - mean) * inverse * scale[i] + shift[i];
}

extern "C" void run_layer_norm(const float *x, const float *scale, const float *shift, float *y, int m, int n,
                               float epsilon, cudaStream_t stream) {
    layer_norm<<<(m + 255) / 256, 256, 0, stream>>>(x, scale, shift, y, m, n, epsilon);
}
