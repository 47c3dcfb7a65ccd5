__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int west = i - 1;
    if (west < 0) west = 0;
    out[j * n + i] = in[j * n + west];
}

// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[clamped-index.cu:6:9]
//  5 │     int west = i - 1;
//  6 │     if (west < 0) west = 0;
//    ·         ────┬───
//    ·             ╰── than what stands in this
//  7 │     out[j * n + i] = in[j * n + west];
//    ·     ───────┬──────
//    ·            ╰── stored at other points
//  8 │ }
//    ╰────
//   help: put all statements under one bounds test
