__global__ void f(double *out, const double *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.y * blockDim.y)
        out[i] = in[i];
}
// expect:
// stencil::loop
//
//   × a loop over points visits each of them, upwards
//    ╭─[grid-stride-of-another-axis.cu:2:5]
//  1 │     __global__ void f(double *out, const double *in, int n) {
//  2 │ ╭─▶     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.y * blockDim.y)
//  3 │ ├─▶         out[i] = in[i];
//    · ╰──── goes in steps of the block
//  4 │     }
//    ╰────
