// Each launch of a template names what it is of; `T(4)` is a cast.
template <typename T, int REACH = 1>
__global__ void lap(T *__restrict__ o, const T *__restrict__ a, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < REACH || j < REACH || i >= n - REACH || j >= m - REACH) return;
    o[j * n + i] = a[j * n + i - REACH] + a[j * n + i + REACH] + a[(j - REACH) * n + i] + a[(j + REACH) * n + i] -
                   T(4) * a[j * n + i];
}
void run(double *o, const double *a, int n, int m) {
    dim3 b(32, 8), g((n + 31) / 32, (m + 7) / 8);
    lap<double, 2><<<g, b>>>(o, a, n, m);
    lap<double, 2> <<<g, b, 0, 0>>>(o, a, n, m);
}
// expect:
// j: 2 and 2 cells are not computed
// i: 2 and 2 cells are not computed
// function lap (o, a) {
//   o[j][i] = a[j][i-2] + a[j][i+2] + a[j-2][i] + a[j+2][i] - 4.0 * a[j][i];
// }
// parameter n, m;
// iterator j, i;
// double o[m][n], a[m][n];
// lap (o, a);
// return o;
