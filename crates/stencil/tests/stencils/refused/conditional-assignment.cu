__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    double west = 0.0;
    if (i > 0) west = in[j * n + i - 1];
    out[j * n + i] = west;
}

// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[conditional-assignment.cu:6:9]
//  5 │     double west = 0.0;
//  6 │     if (i > 0) west = in[j * n + i - 1];
//    ·         ──┬──
//    ·           ╰── than what stands in this
//  7 │     out[j * n + i] = west;
//    ·     ───────┬──────
//    ·            ╰── stored at other points
//  8 │ }
//    ╰────
//   help: put all statements under one bounds test
