#define N 1024

#pragma warpwright stencil unroll(j=2)
__global__ void smooth(double *__restrict__ l_out, const double *__restrict__ l_in, double c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    const double (*in)[N] = (const double (*)[N])l_in;
    double (*out)[N] = (double (*)[N])l_out;
    if (i >= 1 && j >= 1 && i <= N - 2 && j <= N - 2) {
        double temp = c * (in[j - 1][i] + in[j + 1][i] + in[j][i - 1] + in[j][i + 1]);
        out[j][i] = temp - 0.5 * in[j][i];
    }
}
