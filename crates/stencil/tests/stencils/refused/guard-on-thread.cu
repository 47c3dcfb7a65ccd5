__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (threadIdx.x < 30 && i < n && j < m) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::guard
//
//   × the condition is not on the place of the point
//    ╭─[guard-on-thread.cu:4:9]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (threadIdx.x < 30 && i < n && j < m) out[j * n + i] = in[j * n + i];
//    ·         ────────┬───────
//    ·                 ╰── depends on the place of the thread in its block
//  5 │ }
//    ╰────
//   help: compare `blockIdx.x * blockDim.x + threadIdx.x` and so on with the sizes
