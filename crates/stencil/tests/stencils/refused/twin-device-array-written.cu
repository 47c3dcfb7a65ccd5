__device__ double state[4];
__global__ void k(double *out, const double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 4) state[i] = in[i];
    if (i > 0 && i < n - 1) out[i] = state[0] * in[i - 1] + in[i + 1];
}
// expect:
// stencil::divergent
//
//   × statements stand under different conditions
//    ╭─[twin-device-array-written.cu:4:16]
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  4 │     if (i < 4) state[i] = in[i];
//    ·                ────────┬────────
//    ·                        ╰── stored before it
//  5 │     if (i > 0 && i < n - 1) out[i] = state[0] * in[i - 1] + in[i + 1];
//    ·         ─────────┬────────
//    ·                  ╰── this condition is not that of all statements
//  6 │ }
//    ╰────
//   help: put all stores under one bounds test
