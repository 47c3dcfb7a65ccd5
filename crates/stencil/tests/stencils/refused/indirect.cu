__global__ void f(double *out, const double *in, const int *index, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[index[j * n + i]];
}

// expect:
// stencil::affine
//
//   × a subscript is not an integer expression
//    ╭─[indirect.cu:4:45]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[index[j * n + i]];
//    ·                                             ────────┬───────
//    ·                                                     ╰── not affine in the place of the point
//  5 │ }
//    ╰────
//   help: indirect accesses (`a[b[i]]`) are no stencils
