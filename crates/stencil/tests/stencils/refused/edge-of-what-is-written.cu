__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) out[min(x + 1, n - 1)] = in[x];
}
// expect:
// stencil::edge
//
//   × an element is written at a clamped or wrapped place
//    ╭─[edge-of-what-is-written.cu:3:16]
//  2 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (x < n) out[min(x + 1, n - 1)] = in[x];
//    ·                ───────────┬──────────
//    ·                           ╰── in this access
//  4 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
