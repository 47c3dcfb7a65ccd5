__global__ void upwind(float *out, const float *in, const float *vel, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    int s = vel[i] > 0.0f ? 1 : -1;
    out[i] = in[i] - in[i - s];
}
// expect:
// stencil::affine
//
//   × a whole number that depends on data says which element is meant
//    ╭─[select-twin-of-an-index.cu:5:25]
//  4 │     int s = vel[i] > 0.0f ? 1 : -1;
//  5 │     out[i] = in[i] - in[i - s];
//    ·                         ──┬──
//    ·                           ╰── a place and an element
//  6 │ }
//    ╰────
//   help: indirect accesses (`a[b[i]]`) are no stencils
