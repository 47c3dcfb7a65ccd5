__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    out[x] = in[max(x - 1, 0)] + in[(x + 1) % n];
}
// expect:
// stencil::edge
//
//   × indices along one dimension are clamped here and wrapped there
//    ╭─[edge-of-two-kinds.cu:4:34]
//  3 │     if (x >= n) return;
//  4 │     out[x] = in[max(x - 1, 0)] + in[(x + 1) % n];
//    ·                                  ───────┬───────
//    ·                                         ╰── in this access
//  5 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
