// Two cells before the place are read where one is there.
__global__ void f(double *out, const double *in, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y < 2 || y >= m) return;
    out[y * n + x] = (x > 0 ? in[y * n + x - 2] : 0.0) + in[(y - 2) * n + x];
}
// expect:
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[pad-twin-too-far.cu:6:31]
//  5 │     if (x >= n || y < 2 || y >= m) return;
//  6 │     out[y * n + x] = (x > 0 ? in[y * n + x - 2] : 0.0) + in[(y - 2) * n + x];
//    ·                               ────────┬────────
//    ·                                       ╰── `x` begins too early for this
//  7 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
