// Decimal literals beyond `int` have 64 bits, the others no sign.
__global__ void beyond(unsigned char *out, const signed char *in, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    out[i] = in[i] < 2147483648 ? in[i - 1] : in[i + 1];
}
// expect:
// stencil::integer
//
//   × a number beside whole numbers that are data is not of type `int`
//    ╭─[integers-literal-of-another-type.cu:5:14]
//  4 │     if (i < 1 || i >= nx - 1) return;
//  5 │     out[i] = in[i] < 2147483648 ? in[i - 1] : in[i + 1];
//    ·              ─────────┬────────
//    ·                       ╰── computed in another type
//  6 │ }
//    ╰────
//   help: declare it as `int`
