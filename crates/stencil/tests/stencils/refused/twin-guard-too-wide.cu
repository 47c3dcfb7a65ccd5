__global__ void k(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n || j < 1 || j >= m - 1) return;
    out[j * n + i] = in[j * n + i - 1] + in[j * n + i + 1] + in[(j - 1) * n + i] + in[(j + 1) * n + i];
}
// expect:
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[twin-guard-too-wide.cu:5:42]
//  4 │     if (i < 1 || i >= n || j < 1 || j >= m - 1) return;
//  5 │     out[j * n + i] = in[j * n + i - 1] + in[j * n + i + 1] + in[(j - 1) * n + i] + in[(j + 1) * n + i];
//    ·                                          ────────┬────────
//    ·                                                  ╰── `i` ends too late for this
//  6 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
