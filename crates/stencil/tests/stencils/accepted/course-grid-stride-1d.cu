__global__ void heat1d(const float *in, float *out, int n, float r) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        if (i > 0 && i < n - 1)
            out[i] = in[i] + r * (in[i - 1] - 2 * in[i] + in[i + 1]);
        else
            out[i] = in[i];
    }
}
// expect:
// i: 1 and 1 cells are not computed
// function heat1d (in, out, r) {
//   out[i] = in[i] + r * (in[i-1] - 2.0f * in[i] + in[i+1]);
// }
// // other points of i = 0 : n:
// //   out[i] = in[i];
// parameter n;
// iterator i;
// float in[n], out[n], r;
// heat1d (in, out, r);
// return out;
