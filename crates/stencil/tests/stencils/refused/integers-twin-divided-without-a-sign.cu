__global__ void f(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    out[i] = in[i - 1] / 2u + in[i + 1];
}
// expect:
// stencil::integer
//
//   × a number beside whole numbers that are data is not of type `int`
//    ╭─[integers-twin-divided-without-a-sign.cu:4:14]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     out[i] = in[i - 1] / 2u + in[i + 1];
//    ·              ───────┬──────
//    ·                     ╰── computed in another type
//  5 │ }
//    ╰────
//   help: declare it as `int`
