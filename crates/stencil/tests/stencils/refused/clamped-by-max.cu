__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int west = max(i - 1, 0);
    out[j * n + i] = in[j * n + west];
}

// expect:
// stencil::clamped
//
//   × an index that is clamped at the border is not understood
//    ╭─[clamped-by-max.cu:5:16]
//  4 │     if (i >= n || j >= m) return;
//  5 │     int west = max(i - 1, 0);
//    ·                ──────┬──────
//    ·                      ╰── the larger or smaller one, depending on the place of the point
//  6 │     out[j * n + i] = in[j * n + west];
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
