__global__ void below(float *out, const float *in, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    out[i] = in[i - 1] * -1u + in[i + 1];
}
// expect:
// stencil::expression
//
//   × a number below zero without a sign is not understood in a stencil
//    ╭─[number-below-zero-without-a-sign.cu:4:26]
//  3 │     if (i < 1 || i >= nx - 1) return;
//  4 │     out[i] = in[i - 1] * -1u + in[i + 1];
//    ·                          ─┬─
//    ·                           ╰── here
//  5 │ }
//    ╰────
