__global__ void mixa(double *acc, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) acc[i] = (double)in[i - 1] + (double)in[i + 1] - 2.0 * (double)in[i];
}
// expect:
// stencil::cast
//
//   × a cast between `float` and `double` is not understood
//    ╭─[style-mixed-arrays.cu:3:38]
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (i > 0 && i < n - 1) acc[i] = (double)in[i - 1] + (double)in[i + 1] - 2.0 * (double)in[i];
//    ·                                      ────────┬────────
//    ·                                              ╰── changes the type
//  4 │ }
//    ╰────
//   help: assign it to a variable of the other type
