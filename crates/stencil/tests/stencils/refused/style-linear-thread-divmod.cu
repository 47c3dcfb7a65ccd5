__global__ void divmod(double *out, const double *in, int nx, int ny) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int i = t % nx, j = t / nx;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
    out[t] = in[t - 1] + in[t + 1] + in[t - nx] + in[t + nx];
}
// expect:
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[style-linear-thread-divmod.cu:3:13]
//  2 │     int t = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     int i = t % nx, j = t / nx;
//    ·             ───┬──
//    ·                ╰── an index that wraps at the border, a colour, a row of one long array?
//  4 │     if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
