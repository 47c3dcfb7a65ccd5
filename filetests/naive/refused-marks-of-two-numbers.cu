// test: accesses
//  who comes last is not known

__global__ void k(const int *a, int *mark, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    if (a[x] > 0) *mark = 1;
    if (a[x] < 0) *mark = 2;
}

// expect: accesses
// naive::independent
//
//   × all points along `x` store the same element of `mark`
//    ╭─[refused-marks-of-two-numbers.cu:7:19]
//  6 │     if (x >= n) return;
//  7 │     if (a[x] > 0) *mark = 1;
//    ·                   ────┬────
//    ·                       ╰── stored here
//  8 │     if (a[x] < 0) *mark = 2;
//    ╰────
