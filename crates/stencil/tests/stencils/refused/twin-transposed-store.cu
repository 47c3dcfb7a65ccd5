__global__ void k(double *out, const double *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    out[i * m + j] = in[j * n + i - 1] + in[j * n + i + 1];
}
// expect:
// stencil::transposed
//
//   × the subscripts of `in` use `j` before `i`
//    ╭─[twin-transposed-store.cu:5:22]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     out[i * m + j] = in[j * n + i - 1] + in[j * n + i + 1];
//    ·                      ────────┬────────
//    ·                              ╰── not in the order of the loops
//  6 │ }
//    ╰────
//   help: a transposed or diagonal access is no stencil: iterators go outermost first
// stencil::transposed
//
//   × the subscripts of `in` use `j` before `i`
//    ╭─[twin-transposed-store.cu:5:42]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     out[i * m + j] = in[j * n + i - 1] + in[j * n + i + 1];
//    ·                                          ────────┬────────
//    ·                                                  ╰── not in the order of the loops
//  6 │ }
//    ╰────
//   help: a transposed or diagonal access is no stencil: iterators go outermost first
