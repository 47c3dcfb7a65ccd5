__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int l = i == 0 ? n : i - 1;
    out[i] = in[l] + in[i];
}
// expect:
// stencil::divergent
//
//   × points compute different things
//    ╭─[twin-wrap-off-by-one.cu:4:13]
//  3 │     if (i >= n) return;
//  4 │     int l = i == 0 ? n : i - 1;
//    ·             ─────────┬────────
//    ·                      ╰── depends on the place of the point
//  5 │     out[i] = in[l] + in[i];
//    ╰────
//   help: neighbours that are clamped, wrapped or zero outside are not understood
