__global__ void f(double *out, const double *in, int n) {
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.x * 32 + threadIdx.x;
    if (i < n && j < n) out[i] = in[j];
}
// expect:
// stencil::block
//
//   × two block sizes along x are presumed
//    ╭─[two-block-sizes.cu:1:17]
//  1 │ __global__ void f(double *out, const double *in, int n) {
//    ·                 ┬
//    ·                 ╰── in this kernel
//  2 │     int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.x * 32 + threadIdx.x;
//    ╰────
//   help: use `blockDim`, or one number
