// Two-dimensional convolution with channels, a filter of 3 x 3 and a bias: out[o][y][x] from
// in[c][y + i][x + j] and w[o][c][i][j].

#pragma warpwright naive sizes(outs=64, ins=64, m=224, n=224) outputs(out)
extern "C" __global__ void conv2d(const float *in, const float *w, const float *bias, float *out, int outs, int ins,
                                  int m, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int idy = blockIdx.y * blockDim.y + threadIdx.y;
    int idz = blockIdx.z;
    if (idx >= n || idy >= m || idz >= outs) return;
    float sum = bias[idz];
    for (int c = 0; c < ins; c++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                sum += in[(c * (m + 2) + idy + i) * (n + 2) + idx + j] * w[((idz * ins + c) * 3 + i) * 3 + j];
    out[(idz * m + idy) * n + idx] = sum;
}

extern "C" void run_conv2d(const float *in, const float *w, const float *bias, float *out, int outs, int ins, int m,
                           int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16, outs);
    conv2d<<<grid, block, 0, stream>>>(in, w, bias, out, outs, ins, m, n);
}
