#include <cassert>
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        assert(in[i] > 0.0);
        out[i] = in[i - 1] / in[i] + in[i + 1];
    }
}
// expect:
// stencil::effect
//
//   × printing and stopping are no part of a stencil
//    ╭─[twin-assert-inside.cu:5:9]
//  4 │     if (i > 0 && i < n - 1) {
//  5 │         assert(in[i] > 0.0);
//    ·         ───┬──
//    ·            ╰── `assert`
//  6 │         out[i] = in[i - 1] / in[i] + in[i + 1];
//    ╰────
