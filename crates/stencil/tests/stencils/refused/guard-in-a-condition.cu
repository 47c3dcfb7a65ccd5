__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) {
        if (i > 0) {
            if (j < 2) return;
        }
        out[j * n + i] = in[j * n + i];
    }
}

// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[guard-in-a-condition.cu:5:13]
//  4 │     if (i < n && j < m) {
//  5 │         if (i > 0) {
//    ·             ──┬──
//    ·               ╰── than what stands in this
//  6 │             if (j < 2) return;
//  7 │         }
//  8 │         out[j * n + i] = in[j * n + i];
//    ·         ───────┬──────
//    ·                ╰── stored at other points
//  9 │     }
//    ╰────
//   help: put all statements under one bounds test
