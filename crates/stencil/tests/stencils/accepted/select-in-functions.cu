__device__ float minmod(float a, float b) {
    if (a * b <= 0.0f) return 0.0f;
    return fabsf(a) < fabsf(b) ? a : b;
}
__device__ float sign(float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f; }
__global__ void f(float *out, const float *in, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 2 || i >= n - 2) return;
    float left = minmod(in[i] - in[i - 1], in[i - 1] - in[i - 2]);
    float right = minmod(in[i + 1] - in[i], in[i + 2] - in[i + 1]);
    out[i] = in[i] - dt * (right - left) * sign(in[i] - 1.0f);
}
// expect:
// i: 2 and 2 cells are not computed
// function f (out, in, dt) {
//   float a = in[i] - in[i-1];
//   float b = in[i-1] - in[i-2];
//   float left = if_at_most(a * b, 0.0f, 0.0f, if_less(fabs(a), fabs(b), a, b));
//   float a_2 = in[i+1] - in[i];
//   float b_2 = in[i+2] - in[i+1];
//   float right = if_at_most(a_2 * b_2, 0.0f, 0.0f, if_less(fabs(a_2), fabs(b_2), a_2, b_2));
//   float a_3 = in[i] - 1.0f;
//   out[i] = in[i] - dt * (right - left) * if_less(0.0f, a_3, 1.0f, if_less(a_3, 0.0f, -1.0f, 0.0f));
// }
// parameter n;
// iterator i;
// float out[n], in[n], dt;
// f (out, in, dt);
// return out;
