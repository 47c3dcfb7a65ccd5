__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (in[j * n + i] > 0.0) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::divergent
//
//   × the condition is not a bounds test, so points compute different things
//    ╭─[depends-on-data.cu:4:9]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  4 │     if (in[j * n + i] > 0.0) out[j * n + i] = in[j * n + i];
//    ·         ─────────┬─────────
//    ·                  ╰── only places and sizes may be compared
//  5 │ }
//    ╰────
//   help: compute with `fmin`, `fmax` or masks in arrays instead
