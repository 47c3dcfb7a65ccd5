__global__ void periodic(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int l = (i == 0) ? n - 1 : i - 1;
    int r = (i == n - 1) ? 0 : i + 1;
    int d = (j == 0) ? m - 1 : j - 1;
    int u = (j == m - 1) ? 0 : j + 1;
    out[j * n + i] = 0.25 * (in[j * n + l] + in[j * n + r] + in[d * n + i] + in[u * n + i]);
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[style-ternary-wrap.cu:5:13]
//  4 │     if (i >= n || j >= m) return;
//  5 │     int l = (i == 0) ? n - 1 : i - 1;
//    ·             ────────────┬───────────
//    ·                         ╰── a neighbour that is clamped, wrapped or zero outside?
//  6 │     int r = (i == n - 1) ? 0 : i + 1;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
