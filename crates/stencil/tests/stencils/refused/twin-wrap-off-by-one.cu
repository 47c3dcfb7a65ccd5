__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int l = i == 0 ? n : i - 1;
    out[i] = in[l] + in[i];
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[twin-wrap-off-by-one.cu:4:13]
//  3 │     if (i >= n) return;
//  4 │     int l = i == 0 ? n : i - 1;
//    ·             ─────────┬────────
//    ·                      ╰── a neighbour that is clamped, wrapped or zero outside?
//  5 │     out[i] = in[l] + in[i];
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
