// One-dimensional convolution with channels: out[o][x] from in[c][x + t] and w[o][c][t].

#pragma warpwright naive sizes(outs=256, ins=128, n=16384, taps=5) outputs(out)
extern "C" __global__ void conv1d(const float *in, const float *w, float *out, int outs, int ins, int n, int taps) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    if (idx >= n || idy >= outs) return;
    int width = n + taps - 1;
    float sum = 0;
    for (int c = 0; c < ins; c++)
        for (int t = 0; t < taps; t++) sum += in[c * width + idx + t] * w[(idy * ins + c) * taps + t];
    out[idy * n + idx] = sum;
}

extern "C" void run_conv1d(const float *in, const float *w, float *out, int outs, int ins, int n, int taps,
                           cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (outs + 15) / 16);
    conv1d<<<grid, block, 0, stream>>>(in, w, out, outs, ins, n, taps);
}
