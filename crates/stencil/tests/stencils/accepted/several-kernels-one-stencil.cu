__global__ void clear(int *p) { p[threadIdx.x] = 0; }
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) out[i] = in[i] - in[i - 1];
}
__global__ void sum(double *out, const double *in) { atomicAdd(out, in[threadIdx.x]); }
// expect:
// i: 1 and 0 cells are not computed
// function f (out, in) {
//   out[i] = in[i] - in[i-1];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// f (out, in);
// return out;
