__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) atomicAdd(&out[j * n + i], in[j * n + i]);
}

// expect:
// stencil::atomic
//
//   × atomic operations depend on the order of the threads
//    ╭─[atomic.cu:4:25]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) atomicAdd(&out[j * n + i], in[j * n + i]);
//    ·                         ────┬────
//    ·                             ╰── `atomicAdd`
//  5 │ }
//    ╰────
