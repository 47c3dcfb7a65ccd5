#define max(x, y) ((x) > (y) ? (x) : (y))
__global__ void f(double *out, const double *in, int n) {
    int i0 = (int)(blockIdx.x) * (int)(blockDim.x);
    int i = max(i0, 4) + (int)(threadIdx.x);
    if (i <= n - 5) out[i] = in[i - 4] - in[i + 4];
}
// expect:
// i: 4 and 4 cells are not computed
// function f (out, in) {
//   out[i] = in[i-4] - in[i+4];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// f (out, in);
// return out;
