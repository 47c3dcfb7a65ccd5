__global__ void f(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    int left = max(x - 1, 0);
    out[x] = in[max(left - 1, 0)] + in[left + x];
}
// expect:
// stencil::clamped
//
//   × this maximum or minimum is not understood
//    ╭─[edge-taken-twice.cu:5:17]
//  4 │     int left = max(x - 1, 0);
//  5 │     out[x] = in[max(left - 1, 0)] + in[left + x];
//    ·                 ────────┬───────
//    ·                         ╰── no index that is clamped to the first or last cell of a row
//  6 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
