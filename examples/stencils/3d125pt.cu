// 125-point stencil in space, order 2 (Rawat et al., PPoPP 2018, Table 1): the box of 5 x 5 x 5
// points with six weights. Each plane weights its points by their place in the plane; the eight
// corners of the box have a weight of their own.
//
// The grid covers the computed points only, so the first thread computes point 2.

#define N 516

#pragma warpwright stencil unroll(k=4)
__global__ void j3d125pt(double out[][N][N], const double in[][N][N]) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 2;
    int j = blockIdx.y * blockDim.y + threadIdx.y + 2;
    int k = blockIdx.z * blockDim.z + threadIdx.z + 2;

    if (i <= N - 3 && j <= N - 3 && k <= N - 3) {
        out[k][j][i] =
          0.75 * (in[k - 1][j - 1][i - 1] + in[k - 1][j - 1][i + 1] + in[k - 1][j + 1][i - 1] +
            in[k - 1][j + 1][i + 1] + in[k][j - 1][i] + in[k][j][i - 1] + in[k][j][i + 1] +
            in[k][j + 1][i] + in[k + 1][j - 1][i - 1] + in[k + 1][j - 1][i + 1] +
            in[k + 1][j + 1][i - 1] + in[k + 1][j + 1][i + 1]) +
          0.76 * (in[k - 2][j - 2][i - 2] + in[k - 2][j - 2][i + 2] + in[k - 2][j + 2][i - 2] +
            in[k - 2][j + 2][i + 2] + in[k + 2][j - 2][i - 2] + in[k + 2][j - 2][i + 2] +
            in[k + 2][j + 2][i - 2] + in[k + 2][j + 2][i + 2]) +
          1.132 * (in[k - 2][j - 2][i - 1] + in[k - 2][j - 2][i + 1] + in[k - 2][j - 1][i - 2] +
            in[k - 2][j - 1][i + 2] + in[k - 2][j][i] + in[k - 2][j + 1][i - 2] +
            in[k - 2][j + 1][i + 2] + in[k - 2][j + 2][i - 1] + in[k - 2][j + 2][i + 1] +
            in[k - 1][j - 2][i - 2] + in[k - 1][j - 2][i + 2] + in[k - 1][j + 2][i - 2] +
            in[k - 1][j + 2][i + 2] + in[k][j - 2][i] + in[k][j][i - 2] + in[k][j][i + 2] +
            in[k][j + 2][i] + in[k + 1][j - 2][i - 2] + in[k + 1][j - 2][i + 2] +
            in[k + 1][j + 2][i - 2] + in[k + 1][j + 2][i + 2] + in[k + 2][j - 2][i - 1] +
            in[k + 2][j - 2][i + 1] + in[k + 2][j - 1][i - 2] + in[k + 2][j - 1][i + 2] +
            in[k + 2][j][i] + in[k + 2][j + 1][i - 2] + in[k + 2][j + 1][i + 2] +
            in[k + 2][j + 2][i - 1] + in[k + 2][j + 2][i + 1]) +
          0.217 * (in[k - 2][j - 2][i] + in[k - 2][j][i - 2] + in[k - 2][j][i + 2] +
            in[k - 2][j + 2][i] + in[k - 1][j - 1][i] + in[k - 1][j][i - 1] + in[k - 1][j][i + 1] +
            in[k - 1][j + 1][i] + in[k][j - 2][i - 2] + in[k][j - 2][i + 2] + in[k][j + 2][i - 2] +
            in[k][j + 2][i + 2] + in[k + 1][j - 1][i] + in[k + 1][j][i - 1] + in[k + 1][j][i + 1] +
            in[k + 1][j + 1][i] + in[k + 2][j - 2][i] + in[k + 2][j][i - 2] + in[k + 2][j][i + 2] +
            in[k + 2][j + 2][i]) +
          2.13 * (in[k - 2][j - 1][i] + in[k - 2][j][i - 1] + in[k - 2][j][i + 1] +
            in[k - 2][j + 1][i] + in[k - 1][j - 2][i] + in[k - 1][j][i - 2] + in[k - 1][j][i + 2] +
            in[k - 1][j + 2][i] + in[k][j - 2][i - 1] + in[k][j - 2][i + 1] + in[k][j - 1][i - 2] +
            in[k][j - 1][i + 2] + in[k][j][i] + in[k][j + 1][i - 2] + in[k][j + 1][i + 2] +
            in[k][j + 2][i - 1] + in[k][j + 2][i + 1] + in[k + 1][j - 2][i] + in[k + 1][j][i - 2] +
            in[k + 1][j][i + 2] + in[k + 1][j + 2][i] + in[k + 2][j - 1][i] + in[k + 2][j][i - 1] +
            in[k + 2][j][i + 1] + in[k + 2][j + 1][i]) +
          0.331 * (in[k - 2][j - 1][i - 1] + in[k - 2][j - 1][i + 1] + in[k - 2][j + 1][i - 1] +
            in[k - 2][j + 1][i + 1] + in[k - 1][j - 2][i - 1] + in[k - 1][j - 2][i + 1] +
            in[k - 1][j - 1][i - 2] + in[k - 1][j - 1][i + 2] + in[k - 1][j][i] +
            in[k - 1][j + 1][i - 2] + in[k - 1][j + 1][i + 2] + in[k - 1][j + 2][i - 1] +
            in[k - 1][j + 2][i + 1] + in[k][j - 1][i - 1] + in[k][j - 1][i + 1] +
            in[k][j + 1][i - 1] + in[k][j + 1][i + 1] + in[k + 1][j - 2][i - 1] +
            in[k + 1][j - 2][i + 1] + in[k + 1][j - 1][i - 2] + in[k + 1][j - 1][i + 2] +
            in[k + 1][j][i] + in[k + 1][j + 1][i - 2] + in[k + 1][j + 1][i + 2] +
            in[k + 1][j + 2][i - 1] + in[k + 1][j + 2][i + 1] + in[k + 2][j - 1][i - 1] +
            in[k + 2][j - 1][i + 1] + in[k + 2][j + 1][i - 1] + in[k + 2][j + 1][i + 1]);
    }
}
