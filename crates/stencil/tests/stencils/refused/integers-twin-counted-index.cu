__global__ void f(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    int s = 0;
    if (in[i] > 3) s++;
    out[i] = in[i + s];
}
// expect:
// stencil::argument
//
//   × `s` is set under a condition on data
//    ╭─[integers-twin-counted-index.cu:6:21]
//  5 │     if (in[i] > 3) s++;
//  6 │     out[i] = in[i + s];
//    ·                     ┬
//    ·                     ╰── cannot be part of a stencil
//  7 │ }
//    ╰────
