#define R 2
__global__ void f(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    double q[2 * R + 1];
    const int stride = nx * ny;
    for (int n = 1; n <= 2 * R; n++) q[n] = in[(n - 1) * stride + j * nx + i];
    for (int k = R; k < nz - R; k++) {
#pragma unroll
        for (int n = 0; n < 2 * R; n++) q[n] = q[n + 1];
        q[2 * R] = in[(k + R) * stride + j * nx + i];
        double sum = 0.5 * q[R];
        for (int n = 1; n <= R; n++) sum += n * 0.125 * (q[R - n] + q[R + n]);
        out[k * stride + j * nx + i] = sum;
    }
}
// expect:
// k: 2 and 2 cells are not computed
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   double q = in[k-2][j][i];
//   double q_2 = in[k-1][j][i];
//   double q_3 = in[k][j][i];
//   double q_4 = in[k+1][j][i];
//   double q_5 = q;
//   double q_6 = q_2;
//   double q_7 = q_3;
//   double q_8 = q_4;
//   double q_9 = in[k+2][j][i];
//   double sum = 0.5 * q_7;
//   sum += 0.125 * (q_6 + q_8);
//   sum += 0.25 * (q_5 + q_9);
//   out[k][j][i] = sum;
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// f (out, in);
// return out;
