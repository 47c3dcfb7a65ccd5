// test: accesses
//  a word that means nothing is a mistake

#pragma warpwright navie
__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x];
}

// expect: accesses
// naive::pragma
//
//   × `navie` is no pragma of warpwright
//    ╭─[refused-unknown-pragmas.cu:4:1]
//  3 │
//  4 │ #pragma warpwright navie
//    · ────────────┬───────────
//    ·             ╰── in this pragma
//  5 │ __global__ void k(const float *a, float *c, int n) {
//    ╰────
//   help: for example `#pragma warpwright naive sizes(n=4096) outputs(c) reassociate`
