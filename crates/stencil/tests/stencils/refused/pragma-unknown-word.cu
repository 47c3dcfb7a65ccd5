#pragma warpwright stencil fast
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + i];
}

// expect:
// stencil::pragma
//
//   × `fast` is nothing to ask of a stencil
//    ╭─[pragma-unknown-word.cu:1:1]
//  1 │ #pragma warpwright stencil fast
//    · ───────────────┬───────────────
//    ·                ╰── in this pragma
//  2 │ __global__ void f(double *out, const double *in, int m, int n) {
//    ╰────
//   help: for example `#pragma warpwright stencil unroll(j=4, k=2) reassociate`
