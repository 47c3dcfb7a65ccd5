__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[max(i - 1, 3)] + in[min(i + 1, n - 5)];
}
// expect:
// stencil::affine
//
//   × which of the two is larger is not known when the kernel is compiled
//    ╭─[twin-clamp-interior.cu:3:28]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n) out[i] = in[max(i - 1, 3)] + in[min(i + 1, n - 5)];
//    ·                            ──────┬──────
//    ·                                  ╰── not affine in the place of the point
//  4 │ }
//    ╰────
//   help: indices that are clamped at the boundary are not understood
