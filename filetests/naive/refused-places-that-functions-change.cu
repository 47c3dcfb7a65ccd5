// test: accesses
//  where a point stores is up to the function

__device__ void moved(int &x, int n) { x = n - 1 - x; }

__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    int y = x;
    moved(y, n);
    c[y] = a[x];
}

// expect: accesses
// naive::construct
//
//   × a store at an unresolved index
//     ╭─[refused-places-that-functions-change.cu:11:5]
//  10 │     moved(y, n);
//  11 │     c[y] = a[x];
//     ·     ─────┬─────
//     ·          ╰── this is no naive kernel
//  12 │ }
//     ╰────
