// 400 doubles a thread, all live throughout: 255 registers, and most of the values spilled.
extern "C" __global__ void __launch_bounds__(128) spills(const double *in, double *out, int n, int rounds)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n) return;
    double value[400];
#pragma unroll
    for (int i = 0; i < 400; i++) value[i] = in[i * n + thread];
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < 400; i++) value[i] = value[i] * value[(i + 167) % 400] + value[(i + 231) % 400];
    }
#pragma unroll
    for (int i = 0; i < 400; i++) out[i * n + thread] = value[i];
}
