// test: accesses
//  how many turns is not known

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    while (c[x] < a[x]) c[x] += 1;
}

// expect: accesses
// naive::construct
//
//   × a `while` loop
//    ╭─[refused-while-loops.cu:7:5]
//  6 │     if (x >= n) return;
//  7 │     while (c[x] < a[x]) c[x] += 1;
//    ·     ───────────────┬──────────────
//    ·                    ╰── this is no naive kernel
//  8 │ }
//    ╰────
