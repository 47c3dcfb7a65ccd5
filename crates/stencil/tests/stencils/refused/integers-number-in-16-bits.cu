__global__ void cut_off(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    short q = 30000;
    q += 30000;
    signed char c = 100;
    c += 100;
    if (i >= 1 && i < n - 2) out[i] = in[i - 1] + in[i + q + 5536] + in[i + c + 58];
}
// expect:
// stencil::affine
//
//   × a whole number that depends on data says which element is meant
//    ╭─[integers-number-in-16-bits.cu:7:73]
//  6 │     c += 100;
//  7 │     if (i >= 1 && i < n - 2) out[i] = in[i - 1] + in[i + q + 5536] + in[i + c + 58];
//    ·                                                                         ──┬──
//    ·                                                                           ╰── a place and an element
//  8 │ }
//    ╰────
//   help: indirect accesses (`a[b[i]]`) are no stencils
