__device__ unsigned clamped(unsigned i, unsigned n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    out[x] = in[clamped(x - 1, n)] + in[clamped(x + 1, n)];
}
// expect:
// stencil::unsigned
//
//   × a place without a sign is compared after something was taken off it
//    ╭─[edge-without-a-sign-in-a-function.cu:1:62]
//  1 │ __device__ unsigned clamped(unsigned i, unsigned n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
//    ·                                                              ──┬──
//    ·                                                                ╰── below zero it is a very large number
//  2 │ __global__ void f(float *out, const float *in, int n) {
//    ╰────
//   help: declare the place and the sizes as `int`
