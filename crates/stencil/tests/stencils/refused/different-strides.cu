__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + i] + in[j * m + i];
}

// expect:
// stencil::shape
//
//   × `in` is accessed with different strides
//    ╭─[different-strides.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[j * n + i] + in[j * m + i];
//    ·                                          ──────┬──────   ──────┬──────
//    ·                                                │               ╰── another stride than before
//    ·                                                ╰── first here
//  5 │ }
//    ╰────
//   help: rows of an array have one length
