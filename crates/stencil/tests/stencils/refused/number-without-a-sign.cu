__global__ void f(float *out, const float *in, int n) {
    size_t x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x > -1 && x < n - 1) out[x] = in[x + 1] + in[x];
}
// expect:
// stencil::unsigned
//
//   × what has no sign is compared with a number below zero
//    ╭─[number-without-a-sign.cu:3:9]
//  2 │     size_t x = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (x > -1 && x < n - 1) out[x] = in[x + 1] + in[x];
//    ·         ───┬──
//    ·            ╰── the number is a very large one here
//  4 │ }
//    ╰────
