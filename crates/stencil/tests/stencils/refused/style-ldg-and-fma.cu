__global__ void lf(double *out, const double *__restrict__ in, const double *__restrict__ w, int n, int m) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    int j = blockDim.y * blockIdx.y + threadIdx.y;
    if (!(i >= 1 && i < n - 1 && j >= 1 && j < m - 1)) return;
    double s = __ldg(&in[j * n + i]);
    s = fma(__ldg(w + j), __ldg(&in[j * n + i - 1]), s);
    s = fma(-__ldg(w + j), __ldg(in + j * n + i + 1), s);
    out[j * n + i] = fabs(s) > 0.0 ? s : s;
}
// expect:
// stencil::divergent
//
//   × the condition is not a bounds test, so points compute different things
//    ╭─[style-ldg-and-fma.cu:8:22]
//  7 │     s = fma(-__ldg(w + j), __ldg(in + j * n + i + 1), s);
//  8 │     out[j * n + i] = fabs(s) > 0.0 ? s : s;
//    ·                      ──────┬──────
//    ·                            ╰── only places and sizes may be compared
//  9 │ }
//    ╰────
//   help: compute with `fmin`, `fmax` or masks in arrays instead
