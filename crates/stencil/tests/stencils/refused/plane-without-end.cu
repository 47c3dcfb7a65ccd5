__global__ void f(double *out, const double *in, int n, int m) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int z = blockIdx.z + 1;
    if (i < n) out[z * n + i] = in[(z - 1) * n + i];
}
// expect:
// stencil::guard
//
//   × nothing bounds `z` from above
//    ╭─[plane-without-end.cu:4:16]
//  3 │     const int z = blockIdx.z + 1;
//  4 │     if (i < n) out[z * n + i] = in[(z - 1) * n + i];
//    ·                ───────┬──────
//    ·                       ╰── stored without a bounds test
//  5 │ }
//    ╰────
//   help: test the place of the point against the sizes: `if (i < N) …`
