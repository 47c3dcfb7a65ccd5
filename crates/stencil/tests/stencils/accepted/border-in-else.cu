__global__ void f(double *out, double *count, const double *in, double edge, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) {
        const double here = in[j * n + i];
        const bool inside = i > 1 && i < n - 1 && j < m - 2;
        if (inside) {
            out[j * n + i] = in[j * n + i - 2] + in[(j + 2) * n + i + 1] - here;
            count[j * n + i] += 1;
        } else {
            double t = here * edge;
            out[j * n + i] = t + 1;
        }
    }
}
// expect:
// j: 0 and 2 cells are not computed
// i: 2 and 1 cells are not computed
// function f (out, count, in, edge) {
//   double here = in[j][i];
//   out[j][i] = in[j][i-2] + in[j+2][i+1] - here;
//   count[j][i] += 1.0;
// }
// // other points of j = 0 : m, i = 0 : n:
// //   double here = in[j][i];
// //   double t = here * edge;
// //   out[j][i] = t + 1.0;
// parameter m, n;
// iterator j, i;
// double out[m][n], count[m][n], in[m][n], edge;
// f (out, count, in, edge);
// return out, count;
