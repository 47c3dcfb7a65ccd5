// condition on data, not on the place
__global__ void upwind(float *out, const float *in, const float *vel, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float d = vel[i] > 0.0f ? in[i] - in[i - 1] : in[i + 1] - in[i];
    out[i] = in[i] - vel[i] * d;
}
// expect:
// stencil::divergent
//
//   × the condition is not a bounds test, so points compute different things
//    ╭─[pad-twin-upwind.cu:5:15]
//  4 │     if (i < 1 || i >= n - 1) return;
//  5 │     float d = vel[i] > 0.0f ? in[i] - in[i - 1] : in[i + 1] - in[i];
//    ·               ──────┬──────
//    ·                     ╰── only places and sizes may be compared
//  6 │     out[i] = in[i] - vel[i] * d;
//    ╰────
//   help: compute with `fmin`, `fmax` or masks in arrays instead
