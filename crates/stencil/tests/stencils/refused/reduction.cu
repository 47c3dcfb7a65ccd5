__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j] += in[j * n + i];
}

// expect:
// stencil::race
//
//   × all points along `i` write the same elements
//    ╭─[reduction.cu:4:9]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j] += in[j * n + i];
//    ·         ──┬──
//    ·           ╰── there are several points
//  5 │ }
//    ╰────
//   help: every point stores to an element of its own
