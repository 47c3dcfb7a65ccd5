__global__ void row(int *out, const int *in, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    out[i] = (2 * 3u * in[i - 1] + in[i + 1]) / 5;
}
// expect:
// stencil::integer
//
//   × a number beside whole numbers that are data is not of type `int`
//    ╭─[integers-row-of-numbers-without-a-sign.cu:4:15]
//  3 │     if (i < 1 || i >= nx - 1) return;
//  4 │     out[i] = (2 * 3u * in[i - 1] + in[i + 1]) / 5;
//    ·               ─────────┬────────
//    ·                        ╰── computed in another type
//  5 │ }
//    ╰────
//   help: declare it as `int`
