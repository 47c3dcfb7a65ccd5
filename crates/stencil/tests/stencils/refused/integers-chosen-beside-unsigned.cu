__global__ void chosen(float *out, const int *in, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    out[i] = in[i - 1] > in[i + 1] ? 1u : in[i];
}
// expect:
// stencil::integer
//
//   × a number beside whole numbers that are data is not of type `int`
//    ╭─[integers-chosen-beside-unsigned.cu:4:14]
//  3 │     if (i < 1 || i >= nx - 1) return;
//  4 │     out[i] = in[i - 1] > in[i + 1] ? 1u : in[i];
//    ·              ─────────────────┬────────────────
//    ·                               ╰── computed in another type
//  5 │ }
//    ╰────
//   help: declare it as `int`
