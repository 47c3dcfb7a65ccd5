__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i / 2] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::affine
//
//   × this is not affine in the place of the point
//    ╭─[twin-half-index.cu:3:33]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) out[i / 2] = in[i - 1] + in[i + 1];
//    ·                                 ──┬──
//    ·                                   ╰── only sums, and products with sizes, are
//  4 │ }
//    ╰────
