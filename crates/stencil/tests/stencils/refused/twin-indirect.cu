__global__ void k(double *out, const double *in, const int *map, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = in[map[i]] + in[i + 1];
}
// expect:
// stencil::argument
//
//   × `map` is no array of `float` or `double`
//    ╭─[twin-indirect.cu:3:41]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) out[i] = in[map[i]] + in[i + 1];
//    ·                                         ─┬─
//    ·                                          ╰── cannot be part of a stencil
//  4 │ }
//    ╰────
