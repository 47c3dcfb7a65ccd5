__global__ void row(double *out, const double *in, int n, int m) {
    int j = blockIdx.x + 1;
    if (j >= m - 1) return;
    for (int i = threadIdx.x + 1; i < n - 1; i += blockDim.x)
        out[j * n + i] = in[j * n + i] - 0.25 * (in[j * n + i - 1] + in[j * n + i + 1] + in[(j - 1) * n + i] + in[(j + 1) * n + i]);
}
// expect:
// stencil::loop
//
//   × a loop over points visits each of them, upwards
//    ╭─[style-block-row.cu:4:5]
//  3 │         if (j >= m - 1) return;
//  4 │ ╭─▶     for (int i = threadIdx.x + 1; i < n - 1; i += blockDim.x)
//  5 │ ├─▶         out[j * n + i] = in[j * n + i] - 0.25 * (in[j * n + i - 1] + in[j * n + i + 1] + in[(j - 1) * n + i] + in[(j + 1) * n + i]);
//    · ╰──── goes in steps of the block
//  6 │     }
//    ╰────
