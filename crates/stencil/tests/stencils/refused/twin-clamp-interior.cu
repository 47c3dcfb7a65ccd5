__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[max(i - 1, 3)] + in[min(i + 1, n - 5)];
}
// expect:
// stencil::clamped
//
//   × an index that is clamped at the border is not understood
//    ╭─[twin-clamp-interior.cu:3:28]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n) out[i] = in[max(i - 1, 3)] + in[min(i + 1, n - 5)];
//    ·                            ──────┬──────
//    ·                                  ╰── the larger or smaller one, depending on the place of the point
//  4 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
