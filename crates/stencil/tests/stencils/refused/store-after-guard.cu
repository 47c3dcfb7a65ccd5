__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j < m && i < n) out[j * n + i] = in[j * n + i];
    out[j * n + i] = 1.0;
}

// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[store-after-guard.cu:4:9]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (j < m && i < n) out[j * n + i] = in[j * n + i];
//    ·         ───────┬──────
//    ·                ╰── than what stands in this
//  5 │     out[j * n + i] = 1.0;
//    ·     ───────┬──────
//    ·            ╰── stored at other points
//  6 │ }
//    ╰────
//   help: put all statements under one bounds test
