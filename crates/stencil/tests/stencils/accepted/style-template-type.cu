template <typename T>
__global__ void lap(T *__restrict__ o, const T *__restrict__ a, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= n - 1 || j >= m - 1) return;
    o[j * n + i] = a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i] - T(4) * a[j * n + i];
}
void f(float *o, const float *a, int n, int m) {
    dim3 b(32, 8), g((n + 31) / 32, (m + 7) / 8);
    lap<float><<<g, b>>>(o, a, n, m);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lap (o, a) {
//   o[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i] - 4.0f * a[j][i];
// }
// parameter n, m;
// iterator j, i;
// float o[m][n], a[m][n];
// lap (o, a);
// return o;
