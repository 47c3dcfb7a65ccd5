__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < 1 || x >= n - 1) return;
    out[x] = in[max(x - 1, 0)] + in[min(x + 1, n - 1)];
}
// expect:
// x: 1 and 1 cells are not computed
// function f (out, in) {
//   out[x] = in[x-1] + in[x+1];
// }
// parameter n;
// iterator x;
// float out[n], in[n];
// f (out, in);
// return out;
