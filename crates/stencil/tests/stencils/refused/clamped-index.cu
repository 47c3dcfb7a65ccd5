__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int west = i - 1;
    if (west < 0) west = 0;
    out[j * n + i] = in[j * n + west];
}

// expect:
// stencil::argument
//
//   × `west` is set under a condition
//    ╭─[clamped-index.cu:7:33]
//  6 │     if (west < 0) west = 0;
//  7 │     out[j * n + i] = in[j * n + west];
//    ·                                 ──┬─
//    ·                                   ╰── cannot be part of a stencil
//  8 │ }
//    ╰────
