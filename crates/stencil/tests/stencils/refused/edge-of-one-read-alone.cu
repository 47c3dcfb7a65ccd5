__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n - 1) return;
    out[x] = in[max(x - 1, 0)] + in[min(x + 2, n - 1)] + in[x + 1] + in[x - 1];
}
// expect:
// stencil::edge
//
//   × a neighbour beyond the end is clamped or wrapped elsewhere, but not here
//    ╭─[edge-of-one-read-alone.cu:4:70]
//  3 │     if (x >= n - 1) return;
//  4 │     out[x] = in[max(x - 1, 0)] + in[min(x + 2, n - 1)] + in[x + 1] + in[x - 1];
//    ·                                                                      ────┬────
//    ·                                                                          ╰── in this access
//  5 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
