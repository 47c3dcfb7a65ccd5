__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(i - 1) % n] + in[(i + 1) % n];
}
// expect:
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[twin-modulo-negative.cu:3:28]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n) out[i] = in[(i - 1) % n] + in[(i + 1) % n];
//    ·                            ─────┬─────
//    ·                                 ╰── an index that wraps at the border, a colour, a row of one long array?
//  4 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
