__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < n && j < m) out[j * n + i] = out[j * n + i - 1] + in[j * n + i];
}

// expect:
// stencil::in-place
//
//   × `out` is read at another point than the one that is written
//    ╭─[in-place.cu:4:34]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i > 0 && i < n && j < m) out[j * n + i] = out[j * n + i - 1] + in[j * n + i];
//    ·                                  ───────┬──────   ─────────┬────────
//    ·                                         │                  ╰── depends on the order of the points
//    ·                                         ╰── written here
//  5 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
