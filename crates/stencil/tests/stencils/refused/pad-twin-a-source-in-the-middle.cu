// the middle of the domain is special
__global__ void source(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float s = i == n / 2 ? 1.0f : 0.0f;
    out[i] = in[i - 1] + in[i + 1] + s;
}
// expect:
// stencil::affine
//
//   × this is not affine in the place of the point
//    ╭─[pad-twin-a-source-in-the-middle.cu:5:20]
//  4 │     if (i < 1 || i >= n - 1) return;
//  5 │     float s = i == n / 2 ? 1.0f : 0.0f;
//    ·                    ──┬──
//    ·                      ╰── only sums, and products with sizes, are
//  6 │     out[i] = in[i - 1] + in[i + 1] + s;
//    ╰────
