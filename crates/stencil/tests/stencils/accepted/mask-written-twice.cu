__global__ void f(float *out, const float *in, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    if (a[i] > 0.25f) out[i] = in[i - 1];
    if (b[i] < 0.75f) out[i] = in[i + 1];
}
// expect:
// i: 1 and 1 cells are not computed
// function f (out, in, a, b) {
//   float condition = if_less(0.25f, a[i], 1.0f, 0.0f);
//   float stored = in[i-1];
//   out[i] = when(condition, stored);
//   float condition_2 = if_less(b[i], 0.75f, 1.0f, 0.0f);
//   float stored_2 = in[i+1];
//   float stored_3 = if_equal(condition_2, 0.0f, stored, stored_2);
//   float either = if_equal(condition_2, 0.0f, condition, 1.0f);
//   out[i] = when(either, stored_3);
// }
// parameter n;
// iterator i;
// float out[n], in[n], a[n], b[n];
// f (out, in, a, b);
// return out;
