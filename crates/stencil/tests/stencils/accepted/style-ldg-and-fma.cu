__global__ void lf(double *out, const double *__restrict__ in, const double *__restrict__ w, int n, int m) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    int j = blockDim.y * blockIdx.y + threadIdx.y;
    if (!(i >= 1 && i < n - 1 && j >= 1 && j < m - 1)) return;
    double s = __ldg(&in[j * n + i]);
    s = fma(__ldg(w + j), __ldg(&in[j * n + i - 1]), s);
    s = fma(-__ldg(w + j), __ldg(in + j * n + i + 1), s);
    out[j * n + i] = fabs(s) > 0.0 ? s : s;
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lf (out, in, w) {
//   double s = in[j][i];
//   double s_2 = fma(w[j], in[j][i-1], s);
//   double s_3 = fma(-w[j], in[j][i+1], s_2);
//   out[j][i] = if_less(0.0, fabs(s_3), s_3, s_3);
// }
// parameter n, m;
// iterator j, i;
// double out[m][n], in[m][n], w[m];
// points j = 1 : m-1;
// lf (out, in, w);
// return out;
