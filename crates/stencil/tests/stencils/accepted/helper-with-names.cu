__device__ double f1(double x) { double t = x * x; return t + x; }
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f1(in[i]);
}

// expect:
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   double t = in[i] * in[i];
//   out[i] = t + in[i];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// f (out, in);
// return out;
