__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[max(i - 1, 3)] + in[min(i + 1, n - 5)];
}
// expect:
// stencil::edge
//
//   × an index is clamped or wrapped at another place than the end of the row
//    ╭─[twin-clamp-interior.cu:3:25]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i < n) out[i] = in[max(i - 1, 3)] + in[min(i + 1, n - 5)];
//    ·                         ────────┬────────
//    ·                                 ╰── in this access
//  4 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
