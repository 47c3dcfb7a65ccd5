__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < n - 1 && j < m) {
        out[j * n + i] = in[j * n + i - 1] + in[j * n + i + 1];
    } else {
        out[j * n + i] = in[j * n + i];
    }
}

// expect:
// stencil::guard
//
//   × nothing bounds `j` from above
//    ╭─[boundary-in-else.cu:5:9]
//  4 │     if (i > 0 && i < n - 1 && j < m) {
//  5 │         out[j * n + i] = in[j * n + i - 1] + in[j * n + i + 1];
//    ·         ───────┬──────
//    ·                ╰── stored without a bounds test
//  6 │     } else {
//    ╰────
//   help: test the place of the point against the sizes: `if (i < N) …`
