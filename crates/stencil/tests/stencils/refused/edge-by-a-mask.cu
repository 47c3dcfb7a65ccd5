#define N 512
__global__ void f(float *out, const float *in) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= N) return;
    out[x] = in[(x - 1) & (N - 1)] + in[(x + 1) & (N - 1)];
}
// expect:
// stencil::affine
//
//   × this is not affine in the place of the point
//    ╭─[edge-by-a-mask.cu:5:17]
//  4 │     if (x >= N) return;
//  5 │     out[x] = in[(x - 1) & (N - 1)] + in[(x + 1) & (N - 1)];
//    ·                 ────────┬────────
//    ·                         ╰── only sums, and products with sizes, are
//  6 │ }
//    ╰────
