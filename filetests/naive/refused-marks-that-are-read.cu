// test: accesses
//  what a point reads depends on how far the others are

__global__ void k(const int *a, int *c, int *mark, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    if (a[x] > 0) *mark = 1;
    if (*mark == 0) c[x] = a[x];
}

// expect: accesses
// naive::independent
//
//   × all points along `x` store the same element of `mark`
//    ╭─[refused-marks-that-are-read.cu:7:19]
//  6 │     if (x >= n) return;
//  7 │     if (a[x] > 0) *mark = 1;
//    ·                   ────┬────
//    ·                       ╰── stored here
//  8 │     if (*mark == 0) c[x] = a[x];
//    ╰────
