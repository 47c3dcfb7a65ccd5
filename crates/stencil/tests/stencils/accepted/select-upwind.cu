// condition on data, not on the place
__global__ void upwind(float *out, const float *in, const float *vel, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float d = vel[i] > 0.0f ? in[i] - in[i - 1] : in[i + 1] - in[i];
    out[i] = in[i] - vel[i] * d;
}
// expect:
// i: 1 and 1 cells are not computed
// function upwind (out, in, vel) {
//   float d = if_less(0.0f, vel[i], in[i] - in[i-1], in[i+1] - in[i]);
//   out[i] = in[i] - vel[i] * d;
// }
// parameter n;
// iterator i;
// float out[n], in[n], vel[n];
// upwind (out, in, vel);
// return out;
