__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    __shared__ double tile[32][33];
    tile[threadIdx.y][threadIdx.x] = in[j * n + i];
    __syncthreads();
    if (i < n && j < m) out[j * n + i] = tile[threadIdx.y][threadIdx.x];
}

// expect:
// stencil::shared
//
//   × shared memory means that threads work together; points are independent
//    ╭─[shared-memory.cu:4:5]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     __shared__ double tile[32][33];
//    ·     ───────────────┬───────────────
//    ·                    ╰── `__shared__`
//  5 │     tile[threadIdx.y][threadIdx.x] = in[j * n + i];
//    ╰────
//   help: write the kernel with global arrays only; tiling is Warpwright's part
