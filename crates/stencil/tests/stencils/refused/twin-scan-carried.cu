__global__ void k(double *out, const double *in, int n, int m) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= m) return;
    for (int i = 1; i < n - 1; i++) out[j * n + i] = out[j * n + i - 1] + in[j * n + i + 1];
}
// expect:
// stencil::in-place
//
//   × `out` is read at another point than the one that is written
//    ╭─[twin-scan-carried.cu:4:37]
//  3 │     if (j >= m) return;
//  4 │     for (int i = 1; i < n - 1; i++) out[j * n + i] = out[j * n + i - 1] + in[j * n + i + 1];
//    ·                                     ───────┬──────   ─────────┬────────
//    ·                                            │                  ╰── depends on the order of the points
//    ·                                            ╰── written here
//  5 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
