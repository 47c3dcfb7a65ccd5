__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j >= m || i >= n) return;
    out[j * n + i] = in[j * n + i];
    if (i > 0) out[j * n + i] += in[j * n + i - 1];
}

// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[two-guards.cu:5:5]
//  4 │     if (j >= m || i >= n) return;
//  5 │     out[j * n + i] = in[j * n + i];
//    ·     ───────────────┬───────────────
//    ·                    ╰── stored before it
//  6 │     if (i > 0) out[j * n + i] += in[j * n + i - 1];
//    ·         ──┬──
//    ·           ╰── this condition is not that of all statements
//  7 │ }
//    ╰────
//   help: put all stores under one bounds test
