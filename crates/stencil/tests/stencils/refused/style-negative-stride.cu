__global__ void back(double *out, const double *in, int n, int m) {
    int i = n - 1 - (blockIdx.x * blockDim.x + threadIdx.x);
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j >= m) return;
    out[j * n + i] = in[j * n + i - 1] - in[j * n + i + 1];
}
// expect:
// stencil::stride
//
//   × neighbours are not next to each other in `in`
//    ╭─[style-negative-stride.cu:5:22]
//  4 │     if (i < 1 || i >= n - 1 || j >= m) return;
//  5 │     out[j * n + i] = in[j * n + i - 1] - in[j * n + i + 1];
//    ·                      ────────┬────────
//    ·                              ╰── no dimension has stride 1
//  6 │ }
//    ╰────
