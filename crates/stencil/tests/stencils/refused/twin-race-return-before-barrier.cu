__global__ void k(double *out, const double *in, int n) {
    __shared__ double s[258];
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i > 0 && i < n - 1) s[threadIdx.x + 1] = in[i];
    __syncthreads();
    if (i > 0 && i < n - 1) out[i] = s[threadIdx.x] + s[threadIdx.x + 2];
}
// expect:
// stencil::shared
//
//   × a cell of `s` is read that no thread fills so
//    ╭─[twin-race-return-before-barrier.cu:6:38]
//  5 │     __syncthreads();
//  6 │     if (i > 0 && i < n - 1) out[i] = s[threadIdx.x] + s[threadIdx.x + 2];
//    ·                                      ───────┬──────
//    ·                                             ╰── read here, for instance where n = 515
//  7 │ }
//    ╰────
//   help: the margins of the tile are filled on all sides that are read, corners included
