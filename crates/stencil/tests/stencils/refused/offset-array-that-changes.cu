__global__ void turn(const float *in, float *out, int n) {
    int dx[2] = {-1, 1};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    dx[0] = 1;
    if (i > 0 && i < n - 1) out[i] = in[i + dx[0]] + in[i + dx[1]];
}
// expect:
// stencil::local-array
//
//   × `dx` is an array
//    ╭─[offset-array-that-changes.cu:4:5]
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     dx[0] = 1;
//    ·     ─┬
//    ·      ╰── used without a subscript
//  5 │     if (i > 0 && i < n - 1) out[i] = in[i + dx[0]] + in[i + dx[1]];
//    ╰────
