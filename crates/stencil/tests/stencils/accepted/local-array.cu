__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    double v[2] = {in[0], in[1]};
    if (i < n && j < m) out[j * n + i] = v[0] + v[1];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   double v = in[0];
//   double v_2 = in[1];
//   out[j][i] = v + v_2;
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[2];
// f (out, in);
// return out;
