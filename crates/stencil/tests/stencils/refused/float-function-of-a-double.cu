__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = sqrtf(in[j * n + i]);
}

// expect:
// stencil::function
//
//   × `sqrtf` rounds a `double` to a `float`
//    ╭─[float-function-of-a-double.cu:4:42]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (i < n && j < m) out[j * n + i] = sqrtf(in[j * n + i]);
//    ·                                          ──┬──
//    ·                                            ╰── called with a `double`
//  5 │ }
//    ╰────
//   help: write `sqrt`
