// The squared distances to the four nearest points of a set, in three dimensions.

#pragma warpwright naive sizes(m=16384, n=16384) outputs(out)
extern "C" __global__ void nearest4(const float *queries, const float *points, float *out, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= m) return;
    float x = queries[3 * idx], y = queries[3 * idx + 1], z = queries[3 * idx + 2];
    float first = 1e30f, second = 1e30f, third = 1e30f, fourth = 1e30f;
    for (int i = 0; i < n; i++) {
        float dx = points[3 * i] - x;
        float dy = points[3 * i + 1] - y;
        float dz = points[3 * i + 2] - z;
        float d = dx * dx + dy * dy + dz * dz;
        fourth = fminf(fourth, fmaxf(third, d));
        third = fminf(third, fmaxf(second, d));
        second = fminf(second, fmaxf(first, d));
        first = fminf(first, d);
    }
    out[4 * idx] = first;
    out[4 * idx + 1] = second;
    out[4 * idx + 2] = third;
    out[4 * idx + 3] = fourth;
}

extern "C" void run_nearest4(const float *queries, const float *points, float *out, int m, int n,
                             cudaStream_t stream) {
    nearest4<<<(m + 255) / 256, 256, 0, stream>>>(queries, points, out, m, n);
}
