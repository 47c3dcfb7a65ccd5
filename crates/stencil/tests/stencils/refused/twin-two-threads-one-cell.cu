__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) { out[i] = in[i - 1]; out[i + 1] = in[i]; }
}
// expect:
// stencil::scatter
//
//   × `out` is written at another point than the thread's own
//    ╭─[twin-two-threads-one-cell.cu:3:51]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) { out[i] = in[i - 1]; out[i + 1] = in[i]; }
//    ·                                                   ─────┬────
//    ·                                                        ╰── `i+1`
//  4 │ }
//    ╰────
//   help: shift the iterators so that what is written has no offset
