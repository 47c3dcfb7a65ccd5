__global__ void init(double *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 0.0;
}
__global__ void jac(double *b, const double *a, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    b[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[j * n + i - n] + a[j * n + i + n]);
}
__global__ void copyback(double *a, const double *b, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) a[j * n + i] = b[j * n + i];
}
void host(double *a, double *b, int n, int m) {
    dim3 t(32, 8), g((n + 31) / 32, (m + 7) / 8);
    init<<<(n * m + 255) / 256, 256>>>(a, n * m);
    jac<<<g, t>>>(b, a, n, m);
    copyback<<<g, t>>>(a, b, n, m);
}
// expect:
// stencil::kernel
//
//   × `style-two-kernels.cu` has several kernels that are stencils
//    ╭─[style-two-kernels.cu:1:17]
//  1 │ __global__ void init(double *a, int n) {
//    ·                 ──┬─
//    ·                   ╰── a stencil
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//     ╭─[style-two-kernels.cu:5:17]
//   4 │ }
//   5 │ __global__ void jac(double *b, const double *a, int n, int m) {
//     ·                 ─┬─
//     ·                  ╰── a stencil
//   6 │     int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
//   7 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//   8 │     b[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[j * n + i - n] + a[j * n + i + n]);
//   9 │ }
//  10 │ __global__ void copyback(double *a, const double *b, int n, int m) {
//     ·                 ────┬───
//     ·                     ╰── a stencil
//  11 │     int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
//     ╰────
//   help: name one with `--kernel`, to transform it or to see what is in its way
