__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    double west = 0.0;
    if (i > 0) west = in[j * n + i - 1];
    out[j * n + i] = west;
}

// expect:
// stencil::argument
//
//   × `west` is set under a condition
//    ╭─[conditional-assignment.cu:7:22]
//  6 │     if (i > 0) west = in[j * n + i - 1];
//  7 │     out[j * n + i] = west;
//    ·                      ──┬─
//    ·                        ╰── cannot be part of a stencil
//  8 │ }
//    ╰────
