__global__ void weighted(float *out, const signed char *in, int nx) {
    const unsigned w[2] = {1, 2};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    out[i] = w[0] * in[i - 1] + w[1] * in[i + 1];
}
// expect:
// stencil::integer
//
//   × a number beside whole numbers that are data is not of type `int`
//    ╭─[integers-unsigned-weights.cu:5:14]
//  4 │     if (i < 1 || i >= nx - 1) return;
//  5 │     out[i] = w[0] * in[i - 1] + w[1] * in[i + 1];
//    ·              ────────┬───────
//    ·                      ╰── computed in another type
//  6 │ }
//    ╰────
//   help: declare it as `int`
