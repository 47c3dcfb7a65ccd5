__constant__ double weights[25];
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = weights[0] * in[j * n + i];
}

// expect:
// stencil::name
//
//   × `weights` is not known
//    ╭─[constant-memory.cu:5:42]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < n && j < m) out[j * n + i] = weights[0] * in[j * n + i];
//    ·                                          ───┬───
//    ·                                             ╰── no variable, argument or macro of this file
//  6 │ }
//    ╰────
//   help: global variables, constant memory and macros of headers are not read
