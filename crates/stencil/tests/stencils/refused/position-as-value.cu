__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + i] * i;
}

// expect:
// stencil::position
//
//   × a place or a size is used as a value
//    ╭─[position-as-value.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[j * n + i] * i;
//    ·                                          ────────┬────────
//    ·                                                  ╰── depends on where the point is
//  5 │ }
//    ╰────
//   help: points compute from arrays, scalars and constants, not from their place
