__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[i * j];
}

// expect:
// stencil::affine
//
//   × a subscript is not an iterator plus a constant
//    ╭─[not-affine-product.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[i * j];
//    ·                                          ────┬────
//    ·                                              ╰── not affine in the place of the point
//  5 │ }
//    ╰────
