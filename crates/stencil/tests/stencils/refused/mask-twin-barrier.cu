#define B 64
__global__ void f(float *out, const float *in, const float *a, int n) {
    __shared__ float s[B + 2];
    int i = blockIdx.x * B + threadIdx.x + 1;
    if (a[i] > 0.0f) {
        s[threadIdx.x + 1] = in[i];
        __syncthreads();
    }
    if (i < n - 1) out[i] = s[threadIdx.x + 1];
}
// expect:
// stencil::expression
//
//   × shared memory that is filled under a condition on data is not understood in a stencil
//    ╭─[mask-twin-barrier.cu:6:9]
//  5 │     if (a[i] > 0.0f) {
//  6 │         s[threadIdx.x + 1] = in[i];
//    ·         ─────────────┬─────────────
//    ·                      ╰── here
//  7 │         __syncthreads();
//    ╰────
