// Colours from the raw picture of a sensor behind a Bayer filter, by averages of neighbours (Table 1 of
// Yang et al., PLDI 2010): red where row and column are even, blue where both are odd. The raw picture
// has a margin of one.

#pragma warpwright naive sizes(m=2048, n=2048) outputs(red, green, blue)
extern "C" __global__ void demosaic(const float *raw, float *red, float *green, float *blue, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    int width = n + 2;
    int p = (idy + 1) * width + idx + 1;
    float own = raw[p];
    float beside = 0.5f * (raw[p - 1] + raw[p + 1]);
    float above = 0.5f * (raw[p - width] + raw[p + width]);
    float cross = 0.5f * (beside + above);
    float corners = 0.25f * (raw[p - width - 1] + raw[p - width + 1] + raw[p + width - 1] + raw[p + width + 1]);
    float r, g, b;
    if (idy % 2 == 0) {
        if (idx % 2 == 0) {
            r = own; g = cross; b = corners;
        } else {
            r = beside; g = own; b = above;
        }
    } else {
        if (idx % 2 == 0) {
            r = above; g = own; b = beside;
        } else {
            r = corners; g = cross; b = own;
        }
    }
    red[idy * n + idx] = r;
    green[idy * n + idx] = g;
    blue[idy * n + idx] = b;
}

extern "C" void run_demosaic(const float *raw, float *red, float *green, float *blue, int m, int n,
                             cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    demosaic<<<grid, block, 0, stream>>>(raw, red, green, blue, m, n);
}
