// test: accesses
//  a variable of the file may be changed between two points

__device__ float scale;

__device__ float scaled(float x) { return x * scale; }

__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = scaled(a[x]);
}

// expect: accesses
// naive::call
//
//   × `scaled` may have effects, or is not known
//     ╭─[refused-functions-that-read-variables.cu:10:23]
//   9 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  10 │     if (x < n) c[x] = scaled(a[x]);
//     ·                       ──────┬─────
//     ·                             ╰── called here
//  11 │ }
//     ╰────
