__global__ void smooth(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? in[i - 1] : 0.0f;
    float right = i < n - 1 ? in[i + 1] : 0.0f;
    out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * right;
}
// expect:
// i: 1 and 1 cells are not computed
// function smooth (out, in) {
//   float left = in[i-1];
//   float right = in[i+1];
//   out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * right;
// }
// // other points of i = 0 : n:
// //   float left = (i >= 1 ? in[i-1] : 0.0f);
// //   float right = (i < n-1 ? in[i+1] : 0.0f);
// //   out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * right;
// parameter n;
// iterator i;
// float out[n], in[n];
// smooth (out, in);
// return out;
