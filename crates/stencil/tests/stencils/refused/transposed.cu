__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) out[j * n + i] = in[i * n + j];
}

// expect:
// stencil::transposed
//
//   × the subscripts of `in` use `i` before `j`
//    ╭─[transposed.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < n) out[j * n + i] = in[i * n + j];
//    ·                                          ──────┬──────
//    ·                                                ╰── not in the order of the loops
//  5 │ }
//    ╰────
//   help: a transposed or diagonal access is no stencil: iterators go outermost first
