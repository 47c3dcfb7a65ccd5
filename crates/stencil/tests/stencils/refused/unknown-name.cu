__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = weight[0] * in[j * n + i];
}

// expect:
// stencil::name
//
//   × `weight` is not known
//    ╭─[unknown-name.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = weight[0] * in[j * n + i];
//    ·                                          ───┬──
//    ·                                             ╰── no variable, argument or macro of this file
//  5 │ }
//    ╰────
//   help: headers are read where nvcc is found
