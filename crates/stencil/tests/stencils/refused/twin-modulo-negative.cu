__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(i - 1) % n] + in[(i + 1) % n];
}
// expect:
// stencil::affine
//
//   × this is not affine in the place of the point
//    ╭─[twin-modulo-negative.cu:3:28]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n) out[i] = in[(i - 1) % n] + in[(i + 1) % n];
//    ·                            ─────┬─────
//    ·                                 ╰── only sums, and products with sizes, are
//  4 │ }
//    ╰────
