__global__ void f(double *out, const double *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}

// expect:
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   out[i] = in[i];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// f (out, in);
// return out;
