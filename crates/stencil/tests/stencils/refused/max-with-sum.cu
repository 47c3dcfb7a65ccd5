__global__ void f(double *out, const double *in, int n) {
    int i = max((int)(blockIdx.x * blockDim.x), 4) + threadIdx.x;
    if (i <= n - 5) out[i] += in[i - 4] - in[i + 4];
}
// expect:
// stencil::race
//
//   × points that two threads compute are added to
//    ╭─[max-with-sum.cu:2:13]
//  1 │ __global__ void f(double *out, const double *in, int n) {
//  2 │     int i = max((int)(blockIdx.x * blockDim.x), 4) + threadIdx.x;
//    ·             ───────────────────┬──────────────────
//    ·                                ╰── two threads have the same point
//  3 │     if (i <= n - 5) out[i] += in[i - 4] - in[i + 4];
//    ·                     ────────────────┬───────────────
//    ·                                     ╰── added here
//  4 │ }
//    ╰────
