__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 4 || i >= n - 4) return;
    double v = 0.0;
    for (int d = -4; d <= 4; ++d) { if (in[i + d] < 0.0) break; v += in[i + d]; }
    out[i] = v;
}
// expect:
// stencil::divergent
//
//   × some points leave the kernel in the middle
//    ╭─[twin-loop-break-on-data.cu:5:41]
//  4 │     double v = 0.0;
//  5 │     for (int d = -4; d <= 4; ++d) { if (in[i + d] < 0.0) break; v += in[i + d]; }
//    ·                                         ───────┬───────
//    ·                                                ╰── where this holds
//  6 │     out[i] = v;
//    ╰────
