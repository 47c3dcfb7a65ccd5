// Where a picture has a maximum among its eight neighbours (Table 1 of Yang et al., PLDI 2010): 1 there,
// 0 elsewhere. The picture has a margin of one.

#pragma warpwright naive sizes(m=2048, n=2048) outputs(out)
extern "C" __global__ void imregionmax(const float *in, float *out, int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= m) return;
    int width = n + 2;
    float own = in[(idy + 1) * width + idx + 1];
    float most = own;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) most = fmaxf(most, in[(idy + i) * width + idx + j]);
    out[idy * n + idx] = most > own ? 0.0f : 1.0f;
}

extern "C" void run_imregionmax(const float *in, float *out, int m, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    imregionmax<<<grid, block, 0, stream>>>(in, out, m, n);
}
