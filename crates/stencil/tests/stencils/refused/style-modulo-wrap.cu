__global__ void ring(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(i + n - 1) % n] + in[(i + 1) % n] - 2.0 * in[i];
}
// expect:
// stencil::affine
//
//   × this is not affine in the place of the point
//    ╭─[style-modulo-wrap.cu:3:28]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n) out[i] = in[(i + n - 1) % n] + in[(i + 1) % n] - 2.0 * in[i];
//    ·                            ───────┬───────
//    ·                                   ╰── only sums, and products with sizes, are
//  4 │ }
//    ╰────
