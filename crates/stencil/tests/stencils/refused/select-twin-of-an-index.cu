__global__ void upwind(float *out, const float *in, const float *vel, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    int s = vel[i] > 0.0f ? 1 : -1;
    out[i] = in[i] - in[i - s];
}
// expect:
// stencil::expression
//
//   × a whole number that depends on data is not understood in a stencil
//    ╭─[select-twin-of-an-index.cu:4:13]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     int s = vel[i] > 0.0f ? 1 : -1;
//    ·             ───────────┬──────────
//    ·                        ╰── here
//  5 │     out[i] = in[i] - in[i - s];
//    ╰────
