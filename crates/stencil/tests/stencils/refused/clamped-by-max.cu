__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int west = max(i - 1, 0);
    out[j * n + i] = in[j * n + west];
}

// expect:
// stencil::affine
//
//   × which of the two is larger is not known when the kernel is compiled
//    ╭─[clamped-by-max.cu:5:16]
//  4 │     if (i >= n || j >= m) return;
//  5 │     int west = max(i - 1, 0);
//    ·                ──────┬──────
//    ·                      ╰── not affine in the place of the point
//  6 │     out[j * n + i] = in[j * n + west];
//    ╰────
//   help: indices that are clamped at the boundary are not understood
