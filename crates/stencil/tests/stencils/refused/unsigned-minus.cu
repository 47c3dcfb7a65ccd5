__global__ void f(double *out, const double *in, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i - 1 < n - 2) out[i] = in[i];
}
// expect:
// stencil::unsigned
//
//   × a place without a sign is compared after something was taken off it
//    ╭─[unsigned-minus.cu:3:9]
//  2 │     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i - 1 < n - 2) out[i] = in[i];
//    ·         ──────┬──────
//    ·               ╰── below zero it is a very large number
//  4 │ }
//    ╰────
//   help: declare the place and the sizes as `int`
