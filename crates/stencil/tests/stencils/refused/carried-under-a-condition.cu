__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    for (int k = 0; k < l; k++) {
        out[k * n + i] = in[at];
        if (k > 2) at += n;
    }
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[carried-under-a-condition.cu:7:13]
//  6 │         out[k * n + i] = in[at];
//  7 │         if (k > 2) at += n;
//    ·             ──┬──
//    ·               ╰── no index that is clamped to the last cell of a row or wraps to its first one
//  8 │     }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
