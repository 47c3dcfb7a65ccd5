__global__ void f(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    out[i] = (in[i - 1] + in[i + 1]) * n;
}
// expect:
// stencil::position
//
//   × a place or a size is used as a value
//    ╭─[integers-twin-size-and-value.cu:4:14]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     out[i] = (in[i - 1] + in[i + 1]) * n;
//    ·              ─────────────┬─────────────
//    ·                           ╰── also the length of a row or a bound
//  5 │ }
//    ╰────
//   help: pass it a second time, as an argument of its own
