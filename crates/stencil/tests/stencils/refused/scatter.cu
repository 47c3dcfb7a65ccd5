__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < n - 1 && j < m) {
        out[j * n + i - 1] = in[j * n + i];
        out[j * n + i + 1] = in[j * n + i];
    }
}

// expect:
// stencil::scatter
//
//   × `out` is written at another point than the thread's own
//    ╭─[scatter.cu:6:9]
//  5 │         out[j * n + i - 1] = in[j * n + i];
//  6 │         out[j * n + i + 1] = in[j * n + i];
//    ·         ─────────┬────────
//    ·                  ╰── `i+2`
//  7 │     }
//    ╰────
//   help: shift the iterators so that what is written has no offset
