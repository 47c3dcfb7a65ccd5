__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    double v[2] = {in[0], in[1]};
    if (i < n && j < m) out[j * n + i] = v[0] + v[1];
}

// expect:
// stencil::local-array
//
//   × an array of a thread holds constants only
//    ╭─[local-array.cu:4:19]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     double v[2] = {in[0], in[1]};
//    ·                   ───────┬──────
//    ·                          ╰── not all of these are known
//  5 │     if (i < n && j < m) out[j * n + i] = v[0] + v[1];
//    ╰────
//   help: use separate variables
