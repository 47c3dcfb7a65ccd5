// test: accesses
//  how many turns is not known

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    for (int i = 0; i < n; i++) { if (a[i] > x) break; c[x] = i; }
}

// expect: accesses
// naive::construct
//
//   × `break`
//    ╭─[refused-breaks.cu:7:49]
//  6 │     if (x >= n) return;
//  7 │     for (int i = 0; i < n; i++) { if (a[i] > x) break; c[x] = i; }
//    ·                                                 ───┬──
//    ·                                                    ╰── this is no naive kernel
//  8 │ }
//    ╰────
