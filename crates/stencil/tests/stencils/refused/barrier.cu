__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    __syncthreads();
    out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::barrier
//
//   × a barrier means that threads work together; points are independent
//    ╭─[barrier.cu:5:5]
//  4 │     if (i >= n || j >= m) return;
//  5 │     __syncthreads();
//    ·     ──────┬──────
//    ·           ╰── `__syncthreads`
//  6 │     out[j * n + i] = in[j * n + i];
//    ╰────
