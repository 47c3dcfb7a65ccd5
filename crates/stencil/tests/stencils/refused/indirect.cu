__global__ void f(double *out, const double *in, const int *index, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[index[j * n + i]];
}

// expect:
// stencil::argument
//
//   × `index` is no array of `float` or `double`
//    ╭─[indirect.cu:4:45]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = in[index[j * n + i]];
//    ·                                             ──┬──
//    ·                                               ╰── cannot be part of a stencil
//  5 │ }
//    ╰────
