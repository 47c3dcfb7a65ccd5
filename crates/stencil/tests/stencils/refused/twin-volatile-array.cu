__global__ void k(volatile double *out, const volatile double *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
}
// expect:
// cuda::subset
//
//   × `volatile` is outside the subset of CUDA C that is understood
//    ╭─[twin-volatile-array.cu:1:28]
//  1 │ __global__ void k(volatile double *out, const volatile double *in, int n) {
//    ·                            ───┬──
//    ·                               ╰── somebody else may change it, or look at it
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
