__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j < m && i < n) {
        double a = in[j * n + i];
        out[j * n + i] = a > 0.0 ? a : 0.0;
    }
}

// expect:
// stencil::divergent
//
//   × a choice between two values is not understood
//    ╭─[choice-of-values.cu:6:26]
//  5 │         double a = in[j * n + i];
//  6 │         out[j * n + i] = a > 0.0 ? a : 0.0;
//    ·                          ────────┬────────
//    ·                                  ╰── depends on the data
//  7 │     }
//    ╰────
//   help: write `fmax` or `fmin`
