// Points that leave inside of the other condition do not store either.
__global__ void f(float *out, const float *in, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float t = in[i];
    if (a[i] > 0.0f) {
        if (i < 5) return;
        t = in[i - 1];
    }
    out[i] = t + in[i + 1];
}
// expect:
// stencil::divergent
//
//   × some points leave the kernel in the middle
//    ╭─[mask-twin-left-inside-by-place.cu:7:13]
//  6 │     if (a[i] > 0.0f) {
//  7 │         if (i < 5) return;
//    ·             ──┬──
//    ·               ╰── where this holds
//  8 │         t = in[i - 1];
//    ╰────
//   help: let points leave outside of other conditions
