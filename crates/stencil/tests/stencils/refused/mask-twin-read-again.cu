__global__ void f(float *out, const float *in, const float *a, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    if (a[i] > 0.0f) out[i] = in[i - 1];
    sum[i] = out[i] + in[i + 1];
}
// expect:
// stencil::divergent
//
//   × an element is read after it was written under a condition on data
//    ╭─[mask-twin-read-again.cu:5:14]
//  4 │     if (a[i] > 0.0f) out[i] = in[i - 1];
//  5 │     sum[i] = out[i] + in[i + 1];
//    ·              ───┬──
//    ·                 ╰── read here
//  6 │ }
//    ╰────
