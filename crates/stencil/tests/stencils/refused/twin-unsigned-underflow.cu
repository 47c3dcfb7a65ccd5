__global__ void k(double *out, const double *in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[twin-unsigned-underflow.cu:3:29]
//  2 │     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n - 1) out[i] = in[i - 1] + in[i + 1];
//    ·                             ────┬────
//    ·                                 ╰── `i` begins too early for this
//  4 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
