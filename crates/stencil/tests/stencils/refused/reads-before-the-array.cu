__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[(j - 1) * n + i];
}

// expect:
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[reads-before-the-array.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[(j - 1) * n + i];
//    ·                                          ─────────┬─────────
//    ·                                                   ╰── `j` begins too early for this
//  5 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
