// test: accesses
//  what printf does happens in some order

__global__ void k(const int *a, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    printf("%d", x);  c[x] = 0;
}

// expect: accesses
// cuda::subset
//
//   × this is outside the subset of CUDA C that is understood: string literal
//    ╭─[refused-effects.cu:7:12]
//  6 │     if (x >= n) return;
//  7 │     printf("%d", x);  c[x] = 0;
//    ·            ──┬─
//    ·              ╰── not understood
//  8 │ }
//    ╰────
