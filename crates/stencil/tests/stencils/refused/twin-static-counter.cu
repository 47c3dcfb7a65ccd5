__device__ int calls;
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) calls++;
    if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::name
//
//   × `calls` is in memory, but neither `float` nor `double`
//    ╭─[twin-static-counter.cu:1:16]
//  1 │ __device__ int calls;
//    ·                ──┬──
//    ·                  ╰── defined here
//  2 │ __global__ void k(double *out, const double *in, int n) {
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i == 0) calls++;
//    ·                 ──┬──
//    ·                   ╰── used here
//  5 │     if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
//    ╰────
//   help: pass it as an argument
