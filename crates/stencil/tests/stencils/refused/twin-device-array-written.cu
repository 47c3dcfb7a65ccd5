__device__ double state[4];
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 4) state[i] = in[i];
    if (i > 0 && i < n - 1) out[i] = state[0] * in[i - 1] + in[i + 1];
}
// expect:
// stencil::name
//
//   × `state` is a variable of the file, not a constant
//    ╭─[twin-device-array-written.cu:1:19]
//  1 │ __device__ double state[4];
//    ·                   ──┬──
//    ·                     ╰── defined here
//  2 │ __global__ void k(double *out, const double *in, int n) {
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i < 4) state[i] = in[i];
//    ·                ──┬──
//    ·                  ╰── used here
//  5 │     if (i > 0 && i < n - 1) out[i] = state[0] * in[i - 1] + in[i + 1];
//    ╰────
//   help: pass it as an argument, or make it `constexpr`
