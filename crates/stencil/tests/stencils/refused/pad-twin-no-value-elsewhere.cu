__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double west;
    if (i > 0) west = in[i - 1];
    out[i] = west + in[i];
}
// expect:
// stencil::unset
//
//   × `west` has a value at some points only
//    ╭─[pad-twin-no-value-elsewhere.cu:6:14]
//  5 │     if (i > 0) west = in[i - 1];
//  6 │     out[i] = west + in[i];
//    ·              ──┬─
//    ·                ╰── read here
//  7 │ }
//    ╰────
//   help: give it a value where the condition does not hold, too
