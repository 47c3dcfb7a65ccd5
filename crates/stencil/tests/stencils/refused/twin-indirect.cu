__global__ void k(double *out, const double *in, const int *map, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = in[map[i]] + in[i + 1];
}
// expect:
// stencil::affine
//
//   × a subscript is not an integer expression
//    ╭─[twin-indirect.cu:3:41]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) out[i] = in[map[i]] + in[i + 1];
//    ·                                         ───┬──
//    ·                                            ╰── not affine in the place of the point
//  4 │ }
//    ╰────
//   help: indirect accesses (`a[b[i]]`) are no stencils
