__device__ double minmod(double a, double b) {
    if (a * b <= 0.0) return 0.0;
    return fabs(a) < fabs(b) ? a : b;
}
__global__ void limit(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    out[i] = in[i] + 0.5 * minmod(in[i] - in[i - 1], in[i + 1] - in[i]);
}
// expect:
// stencil::divergent
//
//   × the condition is not a bounds test, so points compute different things
//    ╭─[style-limiter-minmod.cu:2:9]
//  1 │ __device__ double minmod(double a, double b) {
//  2 │     if (a * b <= 0.0) return 0.0;
//    ·         ──────┬─────
//    ·               ╰── only places and sizes may be compared
//  3 │     return fabs(a) < fabs(b) ? a : b;
//    ╰────
//   help: compute with `fmin`, `fmax` or masks in arrays instead
