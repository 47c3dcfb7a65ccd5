__global__ void f(float *out, const float *in, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) out[x] = in[min(x + 1, m - 1)];
}
// expect:
// stencil::bounds
//
//   × `x` runs beyond the rows of the arrays
//    ╭─[edge-of-another-size.cu:3:9]
//  2 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (x < n) out[x] = in[min(x + 1, m - 1)];
//    ·         ──┬──
//    ·           ╰── this bound
//  4 │ }
//    ╰────
//   help: the last point of a row is followed by the first one of the next
