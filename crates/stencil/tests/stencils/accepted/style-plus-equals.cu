__global__ void add(double *o, const double *a, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    o[j * n + i] += 0.5 * (a[j * n + i - 1] + a[j * n + i + 1]);
    o[j * n + i] -= 0.25 * (a[(j - 1) * n + i] + a[(j + 1) * n + i]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function add (o, a) {
//   o[j][i] += 0.5 * (a[j][i-1] + a[j][i+1]);
//   o[j][i] -= 0.25 * (a[j-1][i] + a[j+1][i]);
// }
// parameter n, m;
// iterator j, i;
// double o[m][n], a[m][n];
// add (o, a);
// return o;
