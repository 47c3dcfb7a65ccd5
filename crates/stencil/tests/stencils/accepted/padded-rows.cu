// The rows are longer than the points, and the arrays have a halo of one cell.
#define AT(j, i) (((j) + 1) * (n + 2) + (i) + 1)
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[AT(j, i)] = in[AT(j - 1, i)] + in[AT(j + 1, i)] + in[AT(j, i + 1)];
}

// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j-1][i] + in[j+1][i] + in[j][i+1];
// }
// parameter m, n;
// iterator j, i;
// double out[m+2][n+2], in[m+2][n+2];
// points i = 1 : n+1;
// f (out, in);
// return out;
