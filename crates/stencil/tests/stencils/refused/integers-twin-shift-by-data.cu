__global__ void f(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    out[i] = in[i - 1] << in[i + 1];
}
// expect:
// stencil::expression
//
//   × a shift by this is not understood in a stencil
//    ╭─[integers-twin-shift-by-data.cu:4:14]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     out[i] = in[i - 1] << in[i + 1];
//    ·              ───────────┬──────────
//    ·                         ╰── here
//  5 │ }
//    ╰────
