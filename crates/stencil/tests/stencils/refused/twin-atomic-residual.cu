__global__ void k(double *out, const double *in, double *res, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        double v = 0.5 * (in[i - 1] + in[i + 1]);
        out[i] = v;
        atomicAdd(res, fabs(v - in[i]));
    }
}
// expect:
// stencil::atomic
//
//   × atomic operations depend on the order of the threads
//    ╭─[twin-atomic-residual.cu:6:9]
//  5 │         out[i] = v;
//  6 │         atomicAdd(res, fabs(v - in[i]));
//    ·         ────┬────
//    ·             ╰── `atomicAdd`
//  7 │     }
//    ╰────
