#pragma warpwright stencil unroll(k=2)
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::pragma
//
//   × the stencil has no iterator `k`
//    ╭─[pragma-unknown-iterator.cu:1:1]
//  1 │ #pragma warpwright stencil unroll(k=2)
//    · ───────────────────┬──────────────────
//    ·                    ╰── in this pragma
//  2 │ __global__ void f(double *out, const double *in, int m, int n) {
//    ╰────
//   help: it has j, i
