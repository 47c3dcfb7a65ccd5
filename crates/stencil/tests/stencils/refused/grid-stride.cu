__global__ void f(double *out, const double *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}

// expect:
// stencil::loop
//
//   × this loop is not understood
//    ╭─[grid-stride.cu:2:5]
//  1 │     __global__ void f(double *out, const double *in, int n) {
//  2 │ ╭─▶     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
//  3 │ ├─▶         out[i] = in[i];
//    · ╰──── not a count
//  4 │     }
//    ╰────
//   help: write `for (int k = 1; k < N - 1; k++)`
