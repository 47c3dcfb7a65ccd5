#define LIMIT n - 1
#define IDX j * n + i
#define PRODUCT 0.5 * in[IDX]
#define SUM 3.0 * in[IDX] // a product
#define F(a, b) a[b] \
    * 2.0
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < LIMIT && j < m) out[IDX] = PRODUCT + 2.0 * in[IDX + 1] + SUM - F(in, IDX);
}

// expect:
// j: 0 and 0 cells are not computed
// i: 0 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = 0.5 * in[j][i] + 2.0 * in[j][i+1] + 3.0 * in[j][i] - in[j][i] * 2.0;
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
