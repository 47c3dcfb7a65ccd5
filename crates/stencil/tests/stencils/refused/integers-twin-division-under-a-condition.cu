__global__ void f(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    int d = in[i - 1];
    out[i] = d != 0 ? in[i + 1] / d : 0;
}
// expect:
// stencil::expression
//
//   × a division by this under a condition is not understood in a stencil
//    ╭─[integers-twin-division-under-a-condition.cu:5:23]
//  4 │     int d = in[i - 1];
//  5 │     out[i] = d != 0 ? in[i + 1] / d : 0;
//    ·                       ──────┬──────
//    ·                             ╰── here
//  6 │ }
//    ╰────
