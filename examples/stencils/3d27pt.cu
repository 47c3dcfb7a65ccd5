// 27-point stencil in space, order 1 (Rawat et al., PPoPP 2018, Table 1): one weight each for the
// centre, the faces, the edges and the corners of the cube.
//
// A thread walks along k, and computes one point of each plane.

#define L 514
#define M 514
#define N 514

#pragma warpwright stencil unroll(k=4)
__global__ void j3d27pt(double *__restrict__ t_out, const double *__restrict__ t_in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;

    auto in = reinterpret_cast<const double (*)[M][N]>(t_in);
    auto out = reinterpret_cast<double (*)[M][N]>(t_out);

    if (i > 0 && i < N - 1 && j > 0 && j < M - 1) {
        for (int k = 1; k < L - 1; k++) {
            out[k][j][i] =
              0.125 * in[k][j][i] +
              1.14 * (in[k - 1][j][i] + in[k][j - 1][i] + in[k][j][i - 1] + in[k][j][i + 1] +
                in[k][j + 1][i] + in[k + 1][j][i]) +
              1.031 * (in[k - 1][j - 1][i] + in[k - 1][j][i - 1] + in[k - 1][j][i + 1] +
                in[k - 1][j + 1][i] + in[k][j - 1][i - 1] + in[k][j - 1][i + 1] +
                in[k][j + 1][i - 1] + in[k][j + 1][i + 1] + in[k + 1][j - 1][i] +
                in[k + 1][j][i - 1] + in[k + 1][j][i + 1] + in[k + 1][j + 1][i]) +
              0.75 * (in[k - 1][j - 1][i - 1] + in[k - 1][j - 1][i + 1] + in[k - 1][j + 1][i - 1] +
                in[k - 1][j + 1][i + 1] + in[k + 1][j - 1][i - 1] + in[k + 1][j - 1][i + 1] +
                in[k + 1][j + 1][i - 1] + in[k + 1][j + 1][i + 1]);
        }
    }
}
