__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + i / 2];
}

// expect:
// stencil::affine
//
//   × this is not affine in the place of the point
//    ╭─[not-affine-half.cu:4:53]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[j * n + i / 2];
//    ·                                                     ──┬──
//    ·                                                       ╰── only sums, and products with sizes, are
//  5 │ }
//    ╰────
