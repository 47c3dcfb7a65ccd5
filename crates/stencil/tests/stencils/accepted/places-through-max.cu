#define max(x, y) ((x) > (y) ? (x) : (y))
__global__ void f(double *out, const double *in, int n) {
    int i0 = (int)(blockIdx.x) * (int)(blockDim.x);
    int i = max(i0, 0) + (int)(threadIdx.x);
    if (i >= 2 & i <= n - 3) out[i] = in[i - 2] - in[i + 2];
}

// expect:
// i: 2 and 2 cells are not computed
// function f (out, in) {
//   out[i] = in[i-2] - in[i+2];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// f (out, in);
// return out;
