__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[0] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::race
//
//   × all points along `i` write the same elements
//    ╭─[twin-all-threads-one-cell.cu:3:18]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) out[0] = in[i - 1] + in[i + 1];
//    ·                  ────┬────
//    ·                      ╰── there are several points
//  4 │ }
//    ╰────
//   help: every point stores to an element of its own
