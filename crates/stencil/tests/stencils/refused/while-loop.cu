__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    while (i < n) { out[j * n + i] = in[j * n + i]; i++; }
}

// expect:
// stencil::loop
//
//   × a `while` loop is not understood in a stencil
//    ╭─[while-loop.cu:4:5]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     while (i < n) { out[j * n + i] = in[j * n + i]; i++; }
//    ·     ───────────────────────────┬──────────────────────────
//    ·                                ╰── this loop
//  5 │ }
//    ╰────
//   help: write a `for` loop over one dimension
