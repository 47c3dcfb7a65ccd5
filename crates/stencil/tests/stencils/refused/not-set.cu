__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    double t;
    if (i < n && j < m) out[j * n + i] = in[j * n + i] + t;
}

// expect:
// stencil::unset
//
//   × `t` is read before it has a value
//    ╭─[not-set.cu:5:58]
//  4 │     double t;
//  5 │     if (i < n && j < m) out[j * n + i] = in[j * n + i] + t;
//    ·                                                          ┬
//    ·                                                          ╰── no value yet
//  6 │ }
//    ╰────
