__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) atomicAdd(&out[i], in[i - 1] + in[i + 1]);
}
// expect:
// stencil::atomic
//
//   × atomic operations depend on the order of the threads
//    ╭─[twin-atomic-add.cu:3:29]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) atomicAdd(&out[i], in[i - 1] + in[i + 1]);
//    ·                             ────┬────
//    ·                                 ╰── `atomicAdd`
//  4 │ }
//    ╰────
