// ReLU-like and limiter
__global__ void upd(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float a = in[i] - in[i - 1], b = in[i + 1] - in[i];
    float s = 0.0f;
    if (a * b > 0.0f) s = fabsf(a) < fabsf(b) ? a : b;
    out[i] = in[i] + 0.5f * s;
}
// expect:
// i: 1 and 1 cells are not computed
// function upd (out, in) {
//   float a = in[i] - in[i-1];
//   float b = in[i+1] - in[i];
//   float condition = if_less(0.0f, a * b, 1.0f, 0.0f);
//   float s = if_equal(condition, 0.0f, 0.0f, if_less(fabs(a), fabs(b), a, b));
//   out[i] = in[i] + 0.5f * s;
// }
// parameter n;
// iterator i;
// float out[n], in[n];
// upd (out, in);
// return out;
