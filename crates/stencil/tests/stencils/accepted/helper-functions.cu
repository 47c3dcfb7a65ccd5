// The usual small functions of a file are put in the place of their calls.
#define RADIUS 1
__device__ __forceinline__ int at(int y, int x, int pitch) { return y * pitch + x; }
static __device__ double square(double v) { return v * v; }
__device__ inline double along(const double *p, int y, int x, int pitch, double w) {
    const int here = at(y, x, pitch);
    return w * (p[here - RADIUS] + p[here + RADIUS]);
}
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    double v = 3;
    if (i >= RADIUS && i < n - RADIUS && j < m)
        out[at(j, i, n)] = square(along(in, j, i, n, 0.5)) + square(square(in[at(j, i, n)])) + v;
}

// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   double v = 0.5 * (in[j][i-1] + in[j][i+1]);
//   double v_2 = in[j][i] * in[j][i];
//   out[j][i] = v * v + v_2 * v_2 + 3.0;
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// f (out, in);
// return out;
