#define W 1
#define LEFT in[i - W]
__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 3 || i >= n - 2) return;
    double t = LEFT;
#undef W
#define W 2
    out[i] = t + LEFT - in[i + W];
}
// expect:
// i: 3 and 2 cells are not computed
// function f (out, in) {
//   double t = in[i-1];
//   out[i] = t + in[i-2] - in[i+2];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// points i = 3 : n-2;
// f (out, in);
// return out;
