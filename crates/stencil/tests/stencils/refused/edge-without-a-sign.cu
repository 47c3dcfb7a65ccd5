__global__ void f(float *out, const float *in, unsigned n) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    out[x] = in[max(x - 1, 0u)] + in[x];
}
// expect:
// stencil::unsigned
//
//   × a place without a sign is compared after something was taken off it
//    ╭─[edge-without-a-sign.cu:4:17]
//  3 │     if (x >= n) return;
//  4 │     out[x] = in[max(x - 1, 0u)] + in[x];
//    ·                 ───────┬──────
//    ·                        ╰── below zero it is a very large number
//  5 │ }
//    ╰────
//   help: declare the place and the sizes as `int`
