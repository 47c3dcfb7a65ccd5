// 25-point stencil in the plane, order 2 (Rawat et al., PPoPP 2018, Table 1).
// Nine weights: the box of 5 x 5 points is symmetric along both dimensions.
//
// A thread computes one point; the rows have a length that is known when this is compiled.

#define N 8196

#pragma warpwright stencil unroll(j=4)
__global__ void j2d25pt(double *__restrict__ l_out, const double *__restrict__ l_in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;

    const double (*in)[N] = (const double (*)[N])l_in;
    double (*out)[N] = (double (*)[N])l_out;

    if (i >= 2 && j >= 2 && i <= N - 3 && j <= N - 3) {
        out[j][i] =
          0.1 * (in[j - 2][i - 2] + in[j - 2][i + 2] + in[j + 2][i - 2] + in[j + 2][i + 2]) +
          0.2 * (in[j - 2][i - 1] + in[j - 2][i + 1] + in[j + 2][i - 1] + in[j + 2][i + 1]) +
          0.3 * (in[j - 2][i] + in[j + 2][i]) +
          1.1 * (in[j - 1][i - 2] + in[j - 1][i + 2] + in[j + 1][i - 2] + in[j + 1][i + 2]) +
          1.2 * (in[j - 1][i - 1] + in[j - 1][i + 1] + in[j + 1][i - 1] + in[j + 1][i + 1]) +
          1.3 * (in[j - 1][i] + in[j + 1][i]) +
          2.1 * (in[j][i - 2] + in[j][i + 2]) +
          2.2 * (in[j][i - 1] + in[j][i + 1]) +
          2.3 * in[j][i];
    }
}
