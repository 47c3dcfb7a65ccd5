enum { WIDE = 2 };
template <typename real, int R = WIDE>
__global__ void f(real *out, const real *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < R || i >= n - R) return;
    real sum = (real)0.5 * in[i];
    for (int r = 1; r <= R; ++r) sum += in[i - r] + in[i + r];
    out[i] = sum;
}
template __global__ void f<double>(double *, const double *, int);
void host(double *out, const double *in, int n) { f<double, WIDE><<<n / 32 + 1, 32>>>(out, in, n); }
// expect:
// i: 2 and 2 cells are not computed
// function f (out, in) {
//   double sum = 0.5 * in[i];
//   sum += in[i-1] + in[i+1];
//   sum += in[i-2] + in[i+2];
//   out[i] = sum;
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// f (out, in);
// return out;
