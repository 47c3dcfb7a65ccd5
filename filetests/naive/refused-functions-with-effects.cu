// test: accesses
//  a variable of the file is changed

__device__ int calls;

__device__ float counted(float x) {
    calls++;
    return x;
}

__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = counted(a[x]);
}

// expect: accesses
// naive::call
//
//   × `counted` may have effects, or is not known
//     ╭─[refused-functions-with-effects.cu:13:23]
//  12 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  13 │     if (x < n) c[x] = counted(a[x]);
//     ·                       ──────┬──────
//     ·                             ╰── called here
//  14 │ }
//     ╰────
