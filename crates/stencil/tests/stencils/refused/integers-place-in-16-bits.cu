__global__ void wraps(const double *in, double *out, int n) {
    short i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 1 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
}
// expect:
// stencil::expression
//
//   × a place or size in a variable of 16 bits is not understood in a stencil
//    ╭─[integers-place-in-16-bits.cu:2:5]
//  1 │ __global__ void wraps(const double *in, double *out, int n) {
//  2 │     short i = blockIdx.x * blockDim.x + threadIdx.x;
//    ·     ────────────────────────┬───────────────────────
//    ·                             ╰── here
//  3 │     if (i >= 1 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
//    ╰────
