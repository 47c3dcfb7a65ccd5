__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && i < m && j < m) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::guard
//
//   × `i` has two upper bounds
//    ╭─[guard-two-sizes.cu:4:9]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && i < m && j < m) out[j * n + i] = in[j * n + i];
//    ·         ──┬──    ──┬──
//    ·           │        ╰── which is smaller is not known
//    ·           ╰── the other one
//  5 │ }
//    ╰────
