__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = sin(in[j * n + i]);
}

// expect:
// stencil::function
//
//   × a stencil cannot call `sin`
//    ╭─[unknown-function.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = sin(in[j * n + i]);
//    ·                                          ─┬─
//    ·                                           ╰── no known function
//  5 │ }
//    ╰────
//   help: there are sqrt, fabs, fmin, fmax, fma, exp, log, pow
