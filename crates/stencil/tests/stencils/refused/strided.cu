__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[2 * i];
}

// expect:
// stencil::stride
//
//   × neighbours are not next to each other in `in`
//    ╭─[strided.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[2 * i];
//    ·                                          ────┬────
//    ·                                              ╰── no dimension has stride 1
//  5 │ }
//    ╰────
