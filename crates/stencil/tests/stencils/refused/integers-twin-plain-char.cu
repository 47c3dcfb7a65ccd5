__global__ void f(char *out, const char *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::argument
//
//   × `in` is no array of numbers of at most 32 bits or `double`
//    ╭─[integers-twin-plain-char.cu:4:14]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     out[i] = in[i - 1] + in[i + 1];
//    ·              ─┬
//    ·               ╰── cannot be part of a stencil
//  5 │ }
//    ╰────
