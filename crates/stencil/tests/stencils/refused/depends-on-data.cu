__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (in[j * n + i] > 0.0) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::guard
//
//   × nothing bounds `j` from above
//    ╭─[depends-on-data.cu:4:30]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (in[j * n + i] > 0.0) out[j * n + i] = in[j * n + i];
//    ·                              ───────┬──────
//    ·                                     ╰── stored without a bounds test
//  5 │ }
//    ╰────
//   help: test the place of the point against the sizes: `if (i < N) …`
