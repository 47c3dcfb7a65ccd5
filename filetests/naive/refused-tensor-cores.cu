// test: accesses
//  TF32 would be another result, and is not there

#pragma warpwright tf32
__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x];
}

// expect: accesses
// naive::pragma
//
//   × `tf32`: products stay FP32, tensor cores are not used
//    ╭─[refused-tensor-cores.cu:4:1]
//  3 │
//  4 │ #pragma warpwright tf32
//    · ───────────┬───────────
//    ·            ╰── in this pragma
//  5 │ __global__ void k(const float *a, float *c, int n) {
//    ╰────
//   help: for example `#pragma warpwright naive sizes(n=4096) outputs(c) reassociate`
