__global__ void f(double *out, const double *in, const float *kind, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    bool fluid = kind[i] != 1.0f;
    const bool near = kind[i - 1] == 1.0f || kind[i + 1] == 1.0f;
    double v = in[i];
    if (fluid && !near) v = 0.5 * (in[i - 1] + in[i + 1]);
    else if (near) v *= 0.5;
    out[i] = fluid ? v : 0;
}
// expect:
// i: 1 and 1 cells are not computed
// function f (out, in, kind) {
//   float condition = if_equal(kind[i], 1.0f, 0.0f, 1.0f);
//   float condition_2 = if_equal(kind[i-1], 1.0f, 1.0f, if_equal(kind[i+1], 1.0f, 1.0f, 0.0f));
//   double v = in[i];
//   float condition_3 = if_equal(condition, 0.0f, 0.0f, if_equal(condition_2, 0.0f, 1.0f, 0.0f));
//   double v_2 = if_equal(condition_3, 0.0f, v, 0.5 * (in[i-1] + in[i+1]));
//   float condition_4 = condition_2;
//   double v_3 = if_equal(condition_4, 0.0f, v_2, if_equal(condition_3, 0.0f, v_2 * 0.5, v_2));
//   out[i] = if_equal(condition, 0.0f, 0.0, v_3);
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// float kind[n];
// f (out, in, kind);
// return out;
