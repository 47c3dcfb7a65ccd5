#define BX 32
#define BY 8
__global__ void f(double *out, const double *in, int m, int n) {
    int tx = threadIdx.x, bx = blockIdx.x * BX;
    int x = bx + tx;
    int y = BY * blockIdx.y + threadIdx.y;
    if (x < n && y < m)
        out[y * n + x] = 2 * in[y * n + x];
}

// expect:
// y: 0 and 0 cells are not computed
// x: 0 and 0 cells are not computed
// function f (out, in) {
//   out[y][x] = 2.0 * in[y][x];
// }
// parameter m, n;
// iterator y, x;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
