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
// stencil::divergent
//
//   × points on the two sides of a condition compute different things
//    ╭─[boundary-in-else.cu:4:9]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i > 0 && i < n - 1 && j < m) {
//    ·         ─────────────┬─────────────
//    ·                      ╰── this condition
//  5 │         out[j * n + i] = in[j * n + i - 1] + in[j * n + i + 1];
//  6 │     } else {
//    ·            ┬
//    ·            ╰── the other side
//  7 │         out[j * n + i] = in[j * n + i];
//    ╰────
//   help: treat the boundary in a kernel of its own
