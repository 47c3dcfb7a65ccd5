__global__ void f(double *out, const double *in, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = in[at];
        at += gridDim.x * blockDim.x;
    }
}
// expect:
// stencil::carried
//
//   × `at` is carried from one point to the next
//    ╭─[grid-stride-carried.cu:3:5]
//  2 │     int at = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
//    ·     ────────────────────────────────────────────┬───────────────────────────────────────────
//    ·                                                 ╰── assigned inside the loop over points
//  4 │         out[i] = in[at];
//    ╰────
//   help: declare it inside the loop, and compute it from the loop's counter
